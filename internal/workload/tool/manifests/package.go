package manifests

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// keptPackages is how many parsed packages stay in memory. A fleet installs the same few at a time.
const keptPackages = 8

// packages parses each archive once while it is in use. Variables are substituted per cluster.
type packages struct {
	fetcher Fetcher
	readers *confined.Pool
	built   *lru.Cache // made of a plan
}

func newPackages(f Fetcher) *packages {
	return &packages{fetcher: f, readers: newReaders(readTime), built: lru.New(keptPackages)}
}

// plan identifies a directory of an archive.
type plan struct{ digest, path string }

// build returns objects that the caller may modify, in the order in which they are written. owner
// is who wants them.
func (p *packages) build(ctx context.Context, owner string, want tool.Want) ([]map[string]any, error) {
	v, err := parseValues(want.Values)
	if err != nil {
		return nil, &tool.TerminalError{Err: fmt.Errorf("reading the values of package %q: %w", want.Package.Name, err)}
	}
	shared, err := p.load(ctx, owner, want, v.path)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, 0, len(shared))
	for _, object := range shared {
		object = runtime.DeepCopyJSON(object)
		if v.substitute != nil {
			if err := v.substituteAll(object); err != nil {
				return nil, &tool.TerminalError{Err: fmt.Errorf("substituting variables of package %q: %w", want.Package.Name, err)}
			}
		}
		out = append(out, object)
	}
	return out, nil
}

func (p *packages) load(ctx context.Context, owner string, want tool.Want, path string) ([]map[string]any, error) {
	key := plan{want.Resolved.Digest, path}
	if known, ok := p.built.Get(key); ok {
		return known.([]map[string]any), nil // nothing else is put there
	}
	archive, err := p.fetcher.Fetch(ctx, want.Package, want.Resolved)
	if err != nil {
		return nil, fmt.Errorf("getting package %q: %w", want.Package.Name, err)
	}
	objects, err := p.read(ctx, owner, readJob{Archive: archive, Dir: path})
	if err != nil {
		err = fmt.Errorf("reading package %q: %w", want.Package.Name, err)
		if confined.InputFault(err) {
			err = &tool.TerminalError{Err: err}
		}
		return nil, err
	}
	if key.digest != "" {
		p.built.Add(key, objects)
	}
	return objects, nil
}

// values are the settings of a package.
type values struct {
	// path is a directory in the archive.
	path string
	// substitute are the variables, or nil to substitute nothing.
	substitute map[string]any
}

func parseValues(all map[string]any) (values, error) {
	var v values
	for _, key := range slices.Sorted(maps.Keys(all)) {
		var ok bool
		switch value := all[key]; {
		case value == nil:
			ok = true
		case key == "path":
			v.path, ok = value.(string)
		case key == "substitute":
			v.substitute, ok = value.(map[string]any)
		default:
			return v, fmt.Errorf("unknown value %q; manifests support path and substitute", key)
		}
		if !ok {
			return v, fmt.Errorf("value %q must be %s", key, map[string]string{"path": "a string", "substitute": "a map"}[key])
		}
	}
	return v, nil
}
