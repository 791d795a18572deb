package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/userdir"
	"github.com/drover-dev/drover/internal/base/version"
)

// homeFormat is the format that this version writes. It increases when an older Drover can't use
// what a newer one wrote.
const homeFormat = 1

// Home is the directory that holds all state of one plane. Two homes share nothing and can be used
// side by side.
type Home struct {
	Dir string
}

// DefaultHome is $DROVER_HOME, or .drover in the user's home directory.
func DefaultHome() string { return userdir.Find("DROVER_HOME", ".drover") }

// Kubeconfig returns the path of the administrator's kubeconfig, the only file in the home meant
// for users.
func (h Home) Kubeconfig() string { return h.path("kubeconfig") }

// LogFile returns the path of a component's log.
func (h Home) LogFile(component string) string { return h.path("logs", component+".log") }

func (h Home) metaFile() string   { return h.path("home.json") }
func (h Home) configFile() string { return h.path("config.json") }
func (h Home) lockFile() string   { return h.path("lock") }
func (h Home) stateFile() string  { return h.path("run", "state.json") }
func (h Home) packetFile() string { return h.path("run", "packet-api.json") }
func (h Home) etcdDir() string    { return h.path("etcd") }
func (h Home) pkiDir() string     { return h.path("pki") }
func (h Home) runDir() string     { return h.path("run") }

func (h Home) registryDir() string          { return h.path("registry") }
func (h Home) registryPasswordFile() string { return h.path("registry-password") }

func (h Home) path(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

// HomeMeta records which Drover created a home and which used it last.
type HomeMeta struct {
	Format     int       `json:"format"`
	Created    time.Time `json:"created"`
	Drover     string    `json:"drover"`
	Kubernetes string    `json:"kubernetes"`
}

// NewerHomeError means that the home was written by a newer Drover.
type NewerHomeError struct {
	Dir   string
	Meta  HomeMeta
	Known int
}

func (e *NewerHomeError) Error() string {
	return fmt.Sprintf("home %q has format %d of Drover %s, but this Drover %s supports formats up to %d: use that Drover, or choose another --home",
		e.Dir, e.Meta.Format, e.Meta.Drover, version.Get().Version, e.Known)
}

// ReadMeta reads the metadata of a home. It returns fs.ErrNotExist for a directory that is not a
// home yet, and *NewerHomeError for one of a newer Drover.
func (h Home) ReadMeta() (HomeMeta, error) {
	var meta HomeMeta
	data, err := os.ReadFile(h.metaFile())
	if err != nil {
		return meta, fmt.Errorf("reading home: %w", err)
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return meta, fmt.Errorf("parsing home file %q: %w: restore a backup into another --home", h.metaFile(), err)
	}
	if meta.Format > homeFormat {
		return meta, &NewerHomeError{Dir: h.Dir, Meta: meta, Known: homeFormat}
	}
	return meta, nil
}

// Check rejects a home that can't be used, without changing anything.
func (h Home) Check() error {
	info, err := os.Stat(h.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading home %q: %w", h.Dir, err)
	case !info.IsDir():
		return fmt.Errorf("home %q is a file, not a directory: choose another --home", h.Dir)
	}
	_, err = h.ReadMeta()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return h.refuseForeign()
}

// refuseForeign rejects a directory that holds something else. An interrupted first start leaves
// only the names listed here.
func (h Home) refuseForeign() error {
	entries, err := os.ReadDir(h.Dir)
	if err != nil {
		return fmt.Errorf("reading home %q: %w", h.Dir, err)
	}
	ours := map[string]bool{"lock": true, "logs": true, "run": true}
	for _, e := range entries {
		if !ours[e.Name()] && e.Name()[0] != '.' {
			return fmt.Errorf("home %q is not a home of Drover (it contains %q): choose another --home", h.Dir, e.Name())
		}
	}
	return nil
}

// makeRoot creates what is needed to lock the home and to log. home.json, which identifies a home,
// is written before everything else.
func (h Home) makeRoot() error { return h.makeDirs(h.Dir, h.path("logs"), h.runDir()) }

// makeRest creates the other directories.
func (h Home) makeRest() error {
	return h.makeDirs(h.pkiDir(), h.path("encryption"), h.etcdDir(), h.registryDir())
}

// makeDirs creates directories that only the user can read, and restricts existing ones.
func (h Home) makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("home %q is not writable: %w: choose another --home or fix the permissions", h.Dir, err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("restricting the permissions of %q: %w", dir, err)
		}
	}
	return nil
}

// writeMeta records that this Drover now uses the home.
func (h Home) writeMeta(kubernetes string, now time.Time) error {
	meta, err := h.ReadMeta()
	if errors.Is(err, fs.ErrNotExist) {
		meta.Created = now.UTC().Truncate(time.Second)
	} else if err != nil {
		return err
	}
	meta.Format, meta.Drover, meta.Kubernetes = homeFormat, version.Get().Version, kubernetes
	return writeJSON(h.metaFile(), meta)
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %q: %w", path, err)
	}
	return atomicfile.Write(path, append(data, '\n'), 0o600)
}
