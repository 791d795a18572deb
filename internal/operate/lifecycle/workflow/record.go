package workflow

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

// recordFormat grows when an older Drover could no longer go on from what a newer one wrote.
const recordFormat = 1

// record is what is kept of an unfinished run.
type record struct {
	Format      int       `json:"format"`
	Command     string    `json:"command"`
	Cluster     string    `json:"cluster"`
	Fingerprint string    `json:"fingerprint"`
	Drover      string    `json:"drover"`
	Started     time.Time `json:"started"`
	// Begun means that a phase was done, now or before the spec changed, so that there may be something already.
	Begun bool `json:"begun,omitempty"`
	// Running is the phase that was begun last.
	Running string   `json:"running,omitempty"`
	Done    []Result `json:"done,omitempty"`
	// Kept is what phases want to know again later, by their own keys.
	Kept map[string]json.RawMessage `json:"kept,omitempty"`
}

// Result says how a phase ended.
type Result struct {
	Name     string    `json:"name"`
	Finished time.Time `json:"finished,omitzero"`
	Seconds  float64   `json:"seconds"`
	// Skipped says why there was nothing to do.
	Skipped string `json:"skipped,omitempty"`
	// Before means that an earlier run did it.
	Before bool `json:"before,omitempty"`
}

func (r *record) find(phase string) (Result, bool) {
	i := slices.IndexFunc(r.Done, func(x Result) bool { return x.Name == phase })
	if i < 0 {
		return Result{}, false
	}
	return r.Done[i], true
}

func (r *record) add(result Result) {
	r.Done = slices.DeleteFunc(r.Done, func(x Result) bool { return x.Name == result.Name })
	r.Done, r.Running, r.Begun = append(r.Done, result), "", true
}

// Record is where a run is recorded: a file for each cluster in a directory, and a lock beside it.
type Record struct {
	Dir     string
	Cluster string
}

// Path is the file.
func (r Record) Path() string { return filepath.Join(r.Dir, r.Cluster+"-checkpoint.yaml") }

func (r Record) lockFile() string { return filepath.Join(r.Dir, r.Cluster+".lock") }

// Unfinished tells of a run that did not come to its end: its command, and what was begun last. There is none if the command is empty.
func (r Record) Unfinished() (command, phase string, err error) {
	was, err := r.read()
	if err != nil || was == nil {
		return "", "", err
	}
	return was.Command, was.Running, nil
}

// read returns nil if there is no record.
func (r Record) read() (*record, error) {
	data, err := os.ReadFile(r.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // No record is nothing to read, and no failure.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of an earlier run: %w", err)
	}
	out := &record{}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		return nil, &DamagedError{Path: r.Path(), Err: err}
	}
	switch {
	case out.Format > recordFormat:
		return nil, fmt.Errorf("the record %q was written by Drover %s, this is %s: go on with that one", r.Path(), out.Drover, version.Get().Version)
	case out.Format == 0 || out.Command == "":
		return nil, &DamagedError{Path: r.Path(), Err: errors.New("it says nothing about a run")}
	case out.Cluster != r.Cluster:
		return nil, &DamagedError{Path: r.Path(), Err: fmt.Errorf("it is about cluster %q", out.Cluster)}
	}
	return out, nil
}

func (r Record) write(content *record) error {
	data, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	return atomicfile.Write(r.Path(), data, 0o600)
}

// remove forgets the run, with the lock and the directory if nothing else is in it. The caller has the lock.
func (r Record) remove() error {
	if err := os.Remove(r.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of the run: %w", err)
	}
	if err := atomicfile.Sweep(r.Path()); err != nil {
		return err
	}
	r.tidy()
	return nil
}

// tidy removes what means nothing without a record.
func (r Record) tidy() {
	if _, err := os.Lstat(r.Path()); err == nil {
		return
	}
	_ = os.Remove(r.lockFile())
	if os.Remove(r.Dir) == nil {
		_ = os.Remove(filepath.Dir(r.Dir))
	}
}
