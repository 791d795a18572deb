package manifests

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// Packages come from others. Kustomize builds a base again for each overlay that refers to it, so
// that two overlays per level double the objects with each level, and keeps schemas of packages for
// the whole process. So packages are read in a child process with limits.
const (
	confinedName = "manifests"
	readMemory   = 384 << 20
	readTime     = 30 * time.Second
	readTotal    = 5 * time.Minute
	maxRead      = 32 << 20
	readWorkers  = 2
	readIdleTime = 15 * time.Second
)

//nolint:gochecknoinits // The child is this program, or a test of any package, started again.
func init() { confined.Serve(confinedName, readConfined) }

func newReaders(limit time.Duration) *confined.Pool {
	return confined.NewPool(confinedName, confined.Limits{
		Memory: readMemory, Time: limit, Total: readTotal, Result: maxRead, Workers: readWorkers, Idle: readIdleTime,
	})
}

// readJob is a request to read a directory of an archive.
type readJob struct {
	Archive []byte
	Dir     string
}

// readConfined is the work of the child.
func readConfined(request []byte, _ confined.Call) ([]byte, error) {
	var j readJob
	if err := gob.NewDecoder(bytes.NewReader(request)).Decode(&j); err != nil {
		return nil, err
	}
	openapi.ResetOpenAPI()
	objects, err := read(j.Archive, j.Dir)
	if err != nil {
		return nil, err
	}
	return json.Marshal(objects)
}

// read has a child read a directory of an archive for an owner.
func (p *packages) read(ctx context.Context, owner string, j readJob) ([]map[string]any, error) {
	var request bytes.Buffer
	if err := gob.NewEncoder(&request).Encode(j); err != nil {
		return nil, err
	}
	data, err := p.readers.Do(ctx, confined.Task{Owner: owner, Request: request.Bytes()})
	if err != nil {
		return nil, err
	}
	if err := safeyaml.CheckValues(data); err != nil {
		return nil, &confined.FailedError{Message: fmt.Sprintf("reading its objects: %v", err)}
	}
	var out []map[string]any
	err = json.Unmarshal(data, &out)
	return out, err
}
