package helm

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// Templates and dependencies come from the publisher of a chart and can ask for any amount of
// memory and time: aliases of nested dependencies alone make any number of charts. So charts are
// processed and rendered in a child process with limits. Largest known charts need a tenth of them.
const (
	confinedName   = "render"
	renderMemory   = 384 << 20
	renderTime     = 30 * time.Second
	renderTotal    = 5 * time.Minute
	maxLookups     = 1000
	maxRendered    = 32 << 20
	renderWorkers  = 2
	renderIdleTime = 15 * time.Second
)

//nolint:gochecknoinits // The child is this program, or a test of any package, started again.
func init() { confined.Serve(confinedName, renderConfined) }

func newRenderers(limit time.Duration) *confined.Pool {
	return confined.NewPool(confinedName, confined.Limits{
		Memory: renderMemory, Time: limit, Calls: maxLookups, Total: renderTotal, Result: maxRendered, Workers: renderWorkers, Idle: renderIdleTime,
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
	// CRDs asks only for the CRDs.
	CRDs bool
}

// product is the result of a renderJob.
type product struct {
	CRDs []file
	// Processed is what processing dependencies changed, in JSON, or empty.
	Processed []byte
	// Hooks are in JSON, as they are stored.
	Hooks     []byte
	Manifests []file
	Notes     string
}

// processed is what processing dependencies changes in a chart.
type processed struct {
	Dependencies []*chartv2.Dependency
	Values       map[string]any
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

// peer answers what a child asks for.
type peer struct {
	// owner is whose chart it is.
	owner   string
	archive func(context.Context) ([]byte, error)
	look    *lookup
}

func (p peer) answer(ctx context.Context, data []byte) ([]byte, error) {
	var q question
	if err := decodeMessage(data, &q); err != nil {
		return nil, err
	}
	var a reply
	var err error
	if q.Archive != "" {
		a.Archive, err = p.archive(ctx)
	} else {
		a, err = p.look.answer(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	return encodeMessage(a)
}

// run has a child do a job. The error is a FailedError or an ExceededError if it is the chart's
// fault.
func (e *Engine) run(ctx context.Context, j renderJob, p peer) (*product, error) {
	j.Start, j.Values = table(replaceNil(j.Start)), table(replaceNil(j.Values))
	request, err := encodeMessage(j)
	if err != nil {
		return nil, fmt.Errorf("encoding values: %w", err)
	}
	data, err := e.renderers.Do(ctx, confined.Task{Owner: p.owner, Request: request, Answer: p.answer})
	if err != nil {
		return nil, err
	}
	out := &product{}
	return out, decodeMessage(data, out)
}

// hooks returns the hooks of a rendered chart.
func (p *product) hooks() ([]*releasev1.Hook, error) {
	var out []*releasev1.Hook
	err := json.Unmarshal(p.Hooks, &out)
	return out, err
}

// applyTo changes a chart as processing its dependencies did. Numbers keep their form.
func (p *product) applyTo(chart *chartv2.Chart) error {
	if len(p.Processed) == 0 {
		return nil
	}
	if err := safeyaml.CheckValues(p.Processed); err != nil {
		return fmt.Errorf("processing values: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(p.Processed))
	decoder.UseNumber()
	var changed processed
	if err := decoder.Decode(&changed); err != nil {
		return err
	}
	chart.Metadata.Dependencies, chart.Values = changed.Dependencies, changed.Values
	return nil
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
	hasDependencies := len(chart.Metadata.Dependencies) > 0
	if err := process(chart, j.Values); err != nil {
		return nil, err
	}
	var p product
	switch {
	case j.CRDs:
		p.CRDs = crdFiles(chart)
	case hasDependencies:
		p.Processed, err = json.Marshal(processed{chart.Metadata.Dependencies, chart.Values})
	}
	if err == nil && !j.CRDs {
		err = j.render(chart, call, &p)
	}
	if err != nil {
		return nil, err
	}
	return encodeMessage(p)
}

func crdFiles(chart *chartv2.Chart) []file {
	var out []file
	for _, crd := range chart.CRDObjects() {
		out = append(out, file{crd.Filename, string(crd.File.Data)})
	}
	return out
}

// render adds the rendered templates of a processed chart to a product.
func (j renderJob) render(chart *chartv2.Chart, call confined.Call, p *product) error {
	capabilities, err := j.capabilities()
	if err != nil {
		return err
	}
	r := rendering{chart: chart, values: j.Values, release: j.Release, capabilities: capabilities, subNotes: j.SubNotes}
	if j.Lookup {
		r.lookup = remoteLookup{call}
	}
	out, err := r.run()
	if err != nil {
		return err
	}
	p.Notes = out.notes
	for _, m := range out.manifests {
		p.Manifests = append(p.Manifests, file{m.Name, m.Content})
	}
	p.Hooks, err = json.Marshal(out.hooks)
	return err
}

func (j renderJob) capabilities() (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(j.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("parsing Kubernetes version %q: %w", j.Kubernetes, err)
	}
	return &common.Capabilities{KubeVersion: *version, APIVersions: j.APIVersions, HelmVersion: common.DefaultCapabilities.HelmVersion}, nil
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
