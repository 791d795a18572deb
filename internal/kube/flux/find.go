package flux

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-dev/drover/internal/kube/cache"
)

// EnvDir is the environment variable of a directory with the programs, the only one to search if it
// is set.
const EnvDir = "DROVER_FLUX_DIR"

// Dir is the directory of the programs in a release, beside drover.
const Dir = "flux"

// Find returns the programs in the directory that the environment variable names. Without it, Find
// searches for each program in the release that the running executable belongs to, then in the
// cache of the user. Its errors are a *MissingError, a *VersionError, an *OwnerError or one
// of the file system.
func Find() (Programs, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the running executable: %w", err)
	}
	return find(os.Getenv(EnvDir), executable)
}

func find(dir, executable string) (Programs, error) {
	programs := Programs{}
	for _, c := range Controllers() {
		path, err := c.find(dir, executable)
		if err != nil {
			return nil, err
		}
		programs[c.Name] = path
	}
	return programs, nil
}

func (c Controller) find(dir, executable string) (string, error) {
	if dir != "" {
		path := filepath.Join(dir, c.Name)
		return path, c.Check(path)
	}
	beside := releaseDir(executable)
	if err := checkOwner(beside, executable); err != nil {
		return "", err
	}
	path := filepath.Join(beside, c.Name)
	err := c.Check(path)
	missing, ok := errors.AsType[*MissingError](err)
	if !ok {
		return path, err
	}
	return c.findInCache(missing)
}

// releaseDir returns the directory of the programs in the release of an executable. People link to
// drover from a directory in their PATH, so links are followed.
func releaseDir(executable string) string {
	// If the running file was removed, its directory is still the right one.
	if target, err := filepath.EvalSymlinks(executable); err == nil {
		executable = target
	}
	return filepath.Join(filepath.Dir(executable), Dir)
}

// checkOwner rejects a directory that belongs to neither root nor the user nor the owner of the
// executable: anybody can create one beside a drover in, for example, /tmp.
func checkOwner(dir, executable string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // Nothing is found there then.
	}
	trusted := []int{0, os.Geteuid()}
	if its, err := os.Stat(executable); err == nil {
		trusted = append(trusted, owner(its))
	}
	if id := owner(info); !slices.Contains(trusted, id) {
		return &OwnerError{Dir: dir, Owner: id}
	}
	return nil
}

// owner returns the ID of the user that a file belongs to, or -1 if the file system has none.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// findInCache returns the program in the cache of the user, or else completes the error.
func (c Controller) findInCache(missing *MissingError) (string, error) {
	store, err := cache.For(c.Name)
	if err != nil {
		return "", err
	}
	for _, e := range store.List(c.Version) {
		if e.Touch() == nil {
			return e.Binary(), nil
		}
	}
	missing.Looked = append(missing.Looked, filepath.Join(store.Dir, cache.Name(c.Version, "*")))
	return "", missing
}

// Check rejects a file that is not the program in its version, according to what the go command
// recorded in it.
func (c Controller) Check(path string) error {
	info, err := buildinfo.ReadFile(path)
	// The command line of Flux may be in the same directory as drover: a file with the name of Dir.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &MissingError{Controller: c, Looked: []string{path}}
	}
	if err != nil {
		return fmt.Errorf("reading the version of %q: %w", path, err)
	}
	if info.Main.Path != c.Module || info.Main.Version != c.Version {
		return &VersionError{Controller: c, Path: path, Got: info.Main.Path + " " + info.Main.Version}
	}
	return nil
}

// MissingError means that a controller is in none of the searched locations.
type MissingError struct {
	Controller Controller
	Looked     []string // the searched locations in order
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found at %s; keep directory %q of a release beside drover, "+
		"run \"make flux\" in a checkout of Drover to build it, or set %s to a directory that has it",
		e.Controller, strings.Join(e.Looked, " or "), Dir, EnvDir)
}

// OwnerError means that the directory beside drover belongs to a user who could replace the
// controllers, but not drover itself.
type OwnerError struct {
	Dir   string
	Owner int
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("directory %q belongs to user %d, who does not own drover: its programs are not used; "+
		"remove it, move drover to a directory of its own, or set %s", e.Dir, e.Owner, EnvDir)
}

// VersionError means that a file is another program, or another version, than the wanted one.
type VersionError struct {
	Controller Controller
	Path       string
	Got        string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%q is %s, but %s %s is required: use the one of the same release as drover; "+
		"in a checkout of Drover, remove it, unset %s and run \"make flux\"",
		e.Path, e.Got, e.Controller.Module, e.Controller.Version, EnvDir)
}
