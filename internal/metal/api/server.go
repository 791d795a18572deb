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
	// User is the device that has the server, if one has it.
	User *ServerUser `json:"user,omitempty"`
}

// ServerUser is who uses a server.
type ServerUser struct {
	Hostname string `json:"hostname"`
	// State is that of the device.
	State string `json:"state"`
	// Namespace and Cluster are those of the machine of a cluster.
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
}

// Name returns cluster/hostname, or the hostname of a machine without a cluster.
func (u ServerUser) Name() string {
	if u.Cluster == "" {
		return u.Hostname
	}
	return u.Cluster + "/" + u.Hostname
}

// Power states that a ServerPower asks for.
const (
	ServerOn     = "on"
	ServerOff    = "off"
	ServerReboot = "reboot"
)

// ServerPower changes the power state of a server.
type ServerPower struct {
	// State is on, off or reboot.
	State string `json:"state"`
}

// ServerReset restores a server.
type ServerReset struct {
	// Wipe is what is removed from the server: kubernetes, which is the default.
	Wipe string `json:"wipe,omitempty"`
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
