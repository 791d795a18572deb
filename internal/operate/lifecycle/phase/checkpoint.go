package phase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/version"
)

// checkpointFormat is raised when an older Drover could no longer resume what a newer one recorded.
const checkpointFormat = 1

// checkpoint is what is recorded of an unfinished run. Its keys are read by other versions of
// Drover and don't change.
type checkpoint struct {
	Format      int       `json:"format"`
	Command     string    `json:"command"`
	Cluster     string    `json:"cluster"`
	Fingerprint string    `json:"fingerprint"`
	Drover      string    `json:"drover"`
	Started     time.Time `json:"started"`
	// Begun means that a phase was done, in this run or before the spec changed, so that the
	// cluster may exist in part.
	Begun bool `json:"begun,omitempty"`
	// Running is the phase that was begun last.
	Running string   `json:"running,omitempty"`
	Done    []Result `json:"done,omitempty"`
	// Kept holds the values that phases keep, by their own keys.
	Kept map[string]json.RawMessage `json:"kept,omitempty"`
}

// Result says how a phase ended.
type Result struct {
	Name     string    `json:"name"`
	Finished time.Time `json:"finished,omitzero"`
	Seconds  float64   `json:"seconds"`
	// Skipped is the reason why there was nothing to do.
	Skipped string `json:"skipped,omitempty"`
	// Before means that an earlier run did the phase.
	Before bool `json:"before,omitempty"`
}

// find returns the result of a phase that is done.
func (c *checkpoint) find(phase string) (Result, bool) {
	i := slices.IndexFunc(c.Done, func(r Result) bool { return r.Name == phase })
	if i < 0 {
		return Result{}, false
	}
	return c.Done[i], true
}

// add records the result of a phase, and replaces an earlier one.
func (c *checkpoint) add(result Result) {
	c.Done = slices.DeleteFunc(c.Done, func(r Result) bool { return r.Name == result.Name })
	c.Done, c.Running, c.Begun = append(c.Done, result), "", true
}

// Record is where a run is recorded: a checkpoint file for each cluster, with a lock file beside
// it.
type Record struct {
	Dir     string
	Cluster string
}

// Path returns the checkpoint file.
func (r Record) Path() string { return filepath.Join(r.Dir, r.Cluster+"-checkpoint.yaml") }

func (r Record) lockFile() string { return filepath.Join(r.Dir, r.Cluster+".lock") }

// Unfinished returns the command of an unfinished run and the phase it began last. The command is
// empty if there is no such run.
func (r Record) Unfinished() (command, phase string, err error) {
	was, err := r.read()
	if err != nil || was == nil {
		return "", "", err
	}
	return was.Command, was.Running, nil
}

// Kept reads a value that an unfinished run of a command kept, as Progress.Kept does within it.
func (r Record) Kept(command, key string, value any) (bool, error) {
	was, err := r.read()
	if err != nil || was == nil || was.Command != command || was.Kept[key] == nil {
		return false, err
	}
	if err := json.Unmarshal(was.Kept[key], value); err != nil {
		return false, &DamagedError{Path: r.Path(), Err: err}
	}
	return true, nil
}

// read returns nil if there is no checkpoint.
func (r Record) read() (*checkpoint, error) {
	data, err := os.ReadFile(r.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // A missing checkpoint is no failure.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint of an earlier run: %w", err)
	}
	out := &checkpoint{}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		return nil, &DamagedError{Path: r.Path(), Err: err}
	}
	switch {
	case out.Format > checkpointFormat:
		return nil, fmt.Errorf("checkpoint %q was written by Drover %s, and this is Drover %s: resume with that version", r.Path(), out.Drover, version.Get().Version)
	case out.Format == 0 || out.Command == "":
		return nil, &DamagedError{Path: r.Path(), Err: errors.New("it describes no run")}
	case out.Cluster != r.Cluster:
		return nil, &DamagedError{Path: r.Path(), Err: fmt.Errorf("it describes cluster %q", out.Cluster)}
	}
	return out, nil
}

func (r Record) write(content *checkpoint) error {
	data, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	return atomicfile.Write(r.Path(), data, 0o600)
}

// remove deletes the checkpoint, the lock file, and the directory if it is empty. The caller holds
// the lock.
func (r Record) remove() error {
	if err := os.Remove(r.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the checkpoint: %w", err)
	}
	if err := atomicfile.Sweep(r.Path()); err != nil {
		return err
	}
	r.removeLock()
	return nil
}

// removeLock deletes what is useless without a checkpoint.
func (r Record) removeLock() {
	if _, err := os.Lstat(r.Path()); err == nil {
		return
	}
	_ = os.Remove(r.lockFile())
	if os.Remove(r.Dir) == nil {
		_ = os.Remove(filepath.Dir(r.Dir))
	}
}
