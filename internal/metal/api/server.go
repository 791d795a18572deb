package api

import "github.com/drover-dev/drover/internal/metal/inventory"

// Servers is the inventory. It is an extension of the API, like everything below.
type Servers struct {
	Servers []Server `json:"servers"`
}

// Server is a server of the inventory without its secrets.
type Server struct {
	inventory.Server
	EffectivePlan string `json:"effectivePlan,omitempty"`
	// HasSecrets reports whether passwords are stored.
	HasSecrets bool `json:"hasSecrets,omitempty"`
}

// ServerImport adds and updates servers, all or none.
type ServerImport struct {
	Servers []inventory.Entry `json:"servers"`
	// New rejects servers that exist.
	New bool `json:"new,omitempty"`
	// DryRun only reports what would happen.
	DryRun bool `json:"dryRun,omitempty"`
}

// ServerImportResult is what was, or would be, imported. With problems, nothing was.
type ServerImportResult struct {
	Added    []string        `json:"added,omitempty"`
	Updated  []string        `json:"updated,omitempty"`
	Problems []ServerProblem `json:"problems,omitempty"`
}

// ServerProblem is a problem of one server of an import.
type ServerProblem struct {
	Index   int    `json:"index"`
	Message string `json:"message"`
}
