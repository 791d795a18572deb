package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EnvDir names a directory with the programs instead of the cache.
const EnvDir = "DROVER_NODE_DIR"

// programsPrefix starts the names of cache entries with compiled programs.
const programsPrefix = "programs-"

// Names of the compiled programs.
const (
	Containerd = "containerd"
	Shim       = "containerd-shim-runc-v2"
	Ctr        = "ctr"
	Runc       = "runc"
	CoreDNS    = "coredns"
	Pause      = "pause"
)

// CNIPlugins are the plugins in every machine's /opt/cni/bin.
func CNIPlugins() []string { return []string{"bridge", "host-local", "loopback", "portmap"} }

// Names lists every compiled program.
func Names() []string {
	return append([]string{Containerd, Shim, Ctr, Runc, CoreDNS, Pause}, CNIPlugins()...)
}

// Programs is a directory with all compiled programs.
type Programs struct {
	Dir string
}

// ProgramsEntry is the name of the cache entry for one content of the programs.
func ProgramsEntry(key string) string { return programsPrefix + key }

// FindPrograms returns those in dir if it is given, else in the directory that
// the environment names, else those in the cache that were built or used last.
func FindPrograms(dir string, c Cache) (Programs, error) {
	if dir == "" {
		dir = os.Getenv(EnvDir)
	}
	if dir == "" {
		var ok bool
		if dir, ok = c.Latest(programsPrefix); !ok {
			return Programs{}, &MissingError{Looked: filepath.Join(c.Dir, programsPrefix+"*")}
		}
	}
	p := Programs{Dir: dir}
	for _, name := range Names() {
		if _, err := os.Stat(p.Path(name)); err != nil {
			return Programs{}, &MissingError{Looked: p.Path(name)}
		}
	}
	return p, nil
}

// Path is where a program is.
func (p Programs) Path(name string) string { return filepath.Join(p.Dir, name) }

// MissingError means that the programs of a node have not been built.
type MissingError struct {
	Looked string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the programs of a machine (containerd, runc, …) are not there: looked for %s; "+
		"run \"make node\" in a checkout of Drover to build them, or set %s to a directory that has them", e.Looked, EnvDir)
}

// IsMissing tells whether err is about programs that must be built first.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}
