// Package flux finds the Flux controllers that Drover runs, unmodified programs of upstream that
// kube/flux pins. It locates the programs and prepares commands from them. It never builds them
// (hack/build does) and never decides what runs (see package plane). Start at [Find].
package flux

import (
	"context"
	"os/exec"
)

// Controller is one of the programs.
type Controller struct {
	// Name is that of the program, and of upstream's Deployment.
	Name string
	// Module is the module whose root is the main package, Version the one that Drover runs. A test
	// compares it with the module file.
	Module, Version string
}

// Source returns source-controller, which fetches repositories and serves their content.
func Source() Controller {
	return Controller{Name: "source-controller", Module: "github.com/fluxcd/source-controller", Version: "v1.9.6"}
}

// Kustomize returns kustomize-controller, which applies that content.
func Kustomize() Controller {
	return Controller{Name: "kustomize-controller", Module: "github.com/fluxcd/kustomize-controller", Version: "v1.9.5"}
}

// Controllers returns all programs, in build order.
func Controllers() []Controller { return []Controller{Kustomize(), Source()} }

func (c Controller) String() string { return c.Name + " " + c.Version }

// Programs maps the name of each controller to the path of its program.
type Programs map[string]string

// Command prepares to run a controller, as exec.CommandContext does.
func (p Programs) Command(ctx context.Context, c Controller, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, p[c.Name], args...)
}
