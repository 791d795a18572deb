package kube

import (
	"fmt"
	"strings"
)

// MissingError means that no Kubernetes binary of the wanted version was found.
type MissingError struct {
	Version string
	Looked  []string // the searched locations in order
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("no Kubernetes %s binary found; searched:\n  %s\n"+
		"run \"make kube KUBE_VERSIONS=%s\" in a checkout of Drover to build it, or set --kube-dir (%s) to a directory that contains it",
		e.Version, strings.Join(e.Looked, "\n  "), e.Version, EnvDir)
}

// VersionError means that a user-specified location has another version than the wanted one.
type VersionError struct {
	Path string
	Want string
	Got  string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%q is Kubernetes %s, but %s is required: run \"make kube KUBE_VERSIONS=%s\" in a checkout of Drover, "+
		"or omit --kube-dir (%s) to use the one in Drover",
		e.Path, e.Got, e.Want, e.Want, EnvDir)
}
