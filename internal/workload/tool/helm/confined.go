package helm

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/internal/base/confined"
)

// Templates come from the publisher of a chart and can ask for any amount of memory and time, so
// they are executed in a child process with limits. Largest known charts need a tenth of them.
const (
	confinedName   = "render"
	renderMemory   = 384 << 20
	renderTime     = 30 * time.Second
	maxRendered    = 32 << 20
	renderWorkers  = 2
	renderIdleTime = 15 * time.Second
)

//nolint:gochecknoinits // The child is this program, or a test of any package, started again.
func init() { confined.Serve(confinedName, renderConfined) }

func newRenderers(limit time.Duration) *confined.Pool {
	return confined.NewPool(confinedName, confined.Limits{
		Memory: renderMemory, Time: limit, Result: maxRendered, Workers: renderWorkers, Idle: renderIdleTime,
	})
}

// renderJob is a request to render a chart.
type renderJob struct {
	// Digest identifies the archive.
	Digest string
	// Start replaces the values of the chart if HasStart.
	HasStart      bool
	Start, Values map[string]any
	Release       common.ReleaseOptions
	Kubernetes    string
	APIVersions   []string
	Lookup        bool
	SubNotes      bool
}

// product is the result of a renderJob.
type product struct {
	// Hooks are in JSON, as they are stored.
	Hooks     []byte
	Manifests []file
	Notes     string
}

type file struct{ Name, Content string }

// question is a call of the child: for an archive, or for a lookup.
type question struct {
	Archive                           string
	APIVersion, Kind, Namespace, Name string
	// Scope asks only whether the kind is namespaced.
	Scope bool
}

type reply struct {
	Archive    []byte
	Namespaced bool
	// Object is nil if it doesn't exist.
	Object map[string]any
}

// none stands for null, which gob can't encode.
type none struct{}

// encodeMessage encodes a message between two processes of the same program, with the types of
// values.
func encodeMessage(v any) ([]byte, error) {
	var out bytes.Buffer
	err := newEncoder(&out).Encode(v)
	return out.Bytes(), err
}

func newEncoder(out *bytes.Buffer) *gob.Encoder {
	for _, v := range []any{map[string]any{}, []any{}, json.Number(""), none{}} {
		gob.Register(v)
	}
	return gob.NewEncoder(out)
}

func decodeMessage(data []byte, v any) error {
	newEncoder(&bytes.Buffer{}) // It registers types.
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

// replaceNil replaces null by none, and restoreNil does the opposite. Both copy.
func replaceNil(v any) any { return mapValues(v, func(v any) any { return orElse(v, nil, none{}) }) }

func restoreNil(v any) any { return mapValues(v, func(v any) any { return orElse(v, none{}, nil) }) }

func orElse(v, from, to any) any {
	if v == from {
		return to
	}
	return v
}

func mapValues(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		return mapTable(v, leaf)
	case common.Values:
		return mapTable(v, leaf)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = mapValues(v[i], leaf)
		}
		return out
	default:
		return leaf(v)
	}
}

func mapTable(v map[string]any, leaf func(any) any) map[string]any {
	out := make(map[string]any, len(v))
	for key, value := range v {
		out[key] = mapValues(value, leaf)
	}
	return out
}

func table(v any) map[string]any {
	out, _ := v.(map[string]any)
	return out
}

// render has a child render a chart. archive returns the archive of the job, and look is for its
// lookups. The error is a FailedError or an ExceededError if it is the chart's fault.
func (e *Engine) render(ctx context.Context, j renderJob, archive func() ([]byte, error), look *lookup) (*rendered, error) {
	j.Start, j.Values = table(replaceNil(j.Start)), table(replaceNil(j.Values))
	request, err := encodeMessage(j)
	if err != nil {
		return nil, fmt.Errorf("encoding values: %w", err)
	}
	data, err := e.renderers.Do(ctx, request, func(data []byte) ([]byte, error) {
		var q question
		if err := decodeMessage(data, &q); err != nil {
			return nil, err
		}
		var a reply
		var err error
		if q.Archive != "" {
			a.Archive, err = archive()
		} else {
			a, err = look.answer(ctx, q)
		}
		if err != nil {
			return nil, err
		}
		return encodeMessage(a)
	})
	if err != nil {
		return nil, err
	}
	var p product
	if err := decodeMessage(data, &p); err != nil {
		return nil, err
	}
	return p.rendered()
}

func (p product) rendered() (*rendered, error) {
	out := &rendered{notes: p.Notes}
	if err := json.Unmarshal(p.Hooks, &out.hooks); err != nil {
		return nil, err
	}
	for _, m := range p.Manifests {
		out.manifests = append(out.manifests, releaseutil.Manifest{Name: m.Name, Content: m.Content})
	}
	return out, nil
}

// parsedCharts are the charts that a child has parsed. Only children use it.
var parsedCharts = lru.New(keptCharts)

// renderConfined is the work of the child.
func renderConfined(request []byte, call confined.Call) ([]byte, error) {
	var j renderJob
	if err := decodeMessage(request, &j); err != nil {
		return nil, err
	}
	j.Start, j.Values = table(restoreNil(j.Start)), table(restoreNil(j.Values))
	chart, err := j.chart(call)
	if err != nil {
		return nil, err
	}
	if j.HasStart {
		chart.Values = j.Start
	}
	if err := process(chart, j.Values); err != nil {
		return nil, err
	}
	capabilities, err := j.capabilities()
	if err != nil {
		return nil, err
	}
	r := rendering{chart: chart, values: j.Values, release: j.Release, capabilities: capabilities, subNotes: j.SubNotes}
	if j.Lookup {
		r.lookup = remoteLookup{call}
	}
	out, err := r.run()
	if err != nil {
		return nil, err
	}
	return encodeProduct(out)
}

func (j renderJob) capabilities() (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(j.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("parsing Kubernetes version %q: %w", j.Kubernetes, err)
	}
	return &common.Capabilities{KubeVersion: *version, APIVersions: j.APIVersions, HelmVersion: common.DefaultCapabilities.HelmVersion}, nil
}

func encodeProduct(out *rendered) ([]byte, error) {
	if out.hooks == nil {
		out.hooks = []*releasev1.Hook{}
	}
	p := product{Notes: out.notes}
	for _, m := range out.manifests {
		p.Manifests = append(p.Manifests, file{m.Name, m.Content})
	}
	var err error
	if p.Hooks, err = json.Marshal(out.hooks); err != nil {
		return nil, err
	}
	return encodeMessage(p)
}

func (j renderJob) chart(call confined.Call) (*chartv2.Chart, error) {
	if chart, ok := parsedCharts.Get(j.Digest); ok && j.Digest != "" {
		return clone(chart.(*chartv2.Chart)), nil // nothing else is put there
	}
	a, err := ask(call, question{Archive: "archive"})
	if err != nil {
		return nil, err
	}
	chart, err := loader.LoadArchive(bytes.NewReader(a.Archive))
	if err != nil {
		return nil, err
	}
	parsedCharts.Add(j.Digest, chart)
	return clone(chart), nil
}

func ask(call confined.Call, q question) (reply, error) {
	var a reply
	data, err := encodeMessage(q)
	if err != nil {
		return a, err
	}
	if data, err = call(data); err != nil {
		return a, err
	}
	err = decodeMessage(data, &a)
	a.Object = table(restoreNil(a.Object))
	return a, err
}

// chartsFault reports whether the error of a rendering is the chart's fault.
func chartsFault(err error) bool {
	var failed *confined.FailedError
	var exceeded *confined.ExceededError
	return errors.As(err, &failed) || errors.As(err, &exceeded)
}
