package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EnvDir is the environment variable of a directory with the programs, which replaces the cache.
const EnvDir = "DROVER_NODE_DIR"

const (
	// programsPrefix is the prefix of cache entries with all programs.
	programsPrefix = "programs-"
	// partPrefix is the prefix of cache entries with the programs of one Part.
	partPrefix = "part-"
)

// Names of the compiled programs.
const (
	Containerd = "containerd"
	Shim       = "containerd-shim-runc-v2"
	Ctr        = "ctr"
	Runc       = "runc"
	CoreDNS    = "coredns"
	Pause      = "pause"
	// Network is the agent of charts/cni.
	Network = "cni"
)

// CNIPlugins are the plugins in every machine's /opt/cni/bin.
func CNIPlugins() []string { return []string{"bridge", "host-local", "loopback", "portmap", "ptp"} }

// Names lists every compiled program.
func Names() []string {
	return append([]string{Containerd, Shim, Ctr, Runc, CoreDNS, Pause, Network}, CNIPlugins()...)
}

// Programs is a directory with all compiled programs.
type Programs struct {
	Dir string
}

// Part is a set of programs that are compiled together.
type Part struct {
	// Key identifies the inputs of the programs.
	Key string
	// Compile compiles them into the directory.
	Compile func(ctx context.Context, dir string) error
}

// MakePrograms combines all programs in one directory of the cache. Cached parts are not compiled
// again.
func (c Cache) MakePrograms(ctx context.Context, parts []Part) (Programs, error) {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintln(h, p.Key)
	}
	dir, err := c.Make(ctx, programsPrefix+hex.EncodeToString(h.Sum(nil))[:16], func(ctx context.Context, dir string) error {
		for _, p := range parts {
			part, err := c.Make(ctx, partPrefix+p.Key, p.Compile)
			if err != nil {
				return err
			}
			if err := linkAll(part, dir); err != nil {
				return fmt.Errorf("collecting programs: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return Programs{}, err
	}
	return FindPrograms(dir, c)
}

// HasPart reports whether the cache has the programs of a part.
func (c Cache) HasPart(p Part) bool { return present(filepath.Join(c.Dir, partPrefix+p.Key)) }

// MakePart compiles a part if the cache lacks it.
func (c Cache) MakePart(ctx context.Context, p Part) error {
	_, err := c.Make(ctx, partPrefix+p.Key, p.Compile)
	return err
}

func linkAll(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := linkOrCopy(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// FindPrograms returns the programs in dir, in the directory of the environment variable, or the
// most recently used ones in the cache.
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

// Path returns the path of a program.
func (p Programs) Path(name string) string { return filepath.Join(p.Dir, name) }

// MissingError means that the programs of a node have not been built.
type MissingError struct {
	Looked string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("machine programs (containerd, runc, …) not found at %s; "+
		"run \"make node\" in a checkout of Drover to build them, or set %s to a directory that has them", e.Looked, EnvDir)
}

// IsMissing reports whether err is a MissingError.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}
