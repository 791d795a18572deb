package flux

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/kube/cache"
)

// EnvDir is the environment variable of a directory with the programs, which replaces the cache.
const EnvDir = "DROVER_FLUX_DIR"

// Find returns the programs in the directory that the environment variable names, or else in the
// cache of the user. Its errors are a *MissingError, a *VersionError or one of the file system.
func Find() (Programs, error) {
	dir := os.Getenv(EnvDir)
	programs := Programs{}
	for _, c := range Controllers() {
		path, err := c.find(dir)
		if err != nil {
			return nil, err
		}
		programs[c.Name] = path
	}
	return programs, nil
}

func (c Controller) find(dir string) (string, error) {
	if dir != "" {
		path := filepath.Join(dir, c.Name)
		return path, c.Check(path)
	}
	store, err := cache.For(c.Name)
	if err != nil {
		return "", err
	}
	for _, e := range store.List(c.Version) {
		if e.Touch() == nil {
			return e.Binary(), nil
		}
	}
	return "", &MissingError{Controller: c, Looked: filepath.Join(store.Dir, cache.Name(c.Version, "*"))}
}

// Check rejects a file that is not the program in its version, according to what the go command
// recorded in it.
func (c Controller) Check(path string) error {
	info, err := buildinfo.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &MissingError{Controller: c, Looked: path}
	}
	if err != nil {
		return fmt.Errorf("reading the version of %q: %w", path, err)
	}
	if info.Main.Path != c.Module || info.Main.Version != c.Version {
		return &VersionError{Controller: c, Path: path, Got: info.Main.Path + " " + info.Main.Version}
	}
	return nil
}

// MissingError means that a controller has not been built.
type MissingError struct {
	Controller Controller
	Looked     string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found at %s; run \"make flux\" in a checkout of Drover to build it, or set %s to a directory that has it",
		e.Controller, e.Looked, EnvDir)
}

// VersionError means that a file is another program, or another version, than the wanted one.
type VersionError struct {
	Controller Controller
	Path       string
	Got        string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%q is %s, but %s %s is required: run \"make flux\" in a checkout of Drover, or unset %s",
		e.Path, e.Got, e.Controller.Module, e.Controller.Version, EnvDir)
}
