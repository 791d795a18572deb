package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/addons/plan"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// parallel is how many clusters are queried at a time.
const parallel = 8

// Outlook is what would happen on a group of clusters.
type Outlook struct {
	Clusters []string    `json:"clusters"`
	Action   plan.Action `json:"action"`
	// Version is the resolved version of the package.
	Version string `json:"version,omitempty"`
	// Fields names the fields of the HelmReleaseProxy that would change, without their values.
	Fields  []string `json:"fields,omitempty"`
	Objects []Object `json:"objects,omitempty"`
	// Error is why the outcome isn't known.
	Error string `json:"error,omitempty"`
}

// Object is an object on a cluster that would change.
type Object struct {
	Action    string `json:"action"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Diff      string `json:"diff,omitempty"`
}

// Changes reports whether anything would change.
func (o Outlook) Changes() bool { return o.Error == "" && o.Action != plan.Unchanged }

// releaseName replaces a generated release name, so that clusters with the same changes form one
// group.
const releaseName = "<release>"

// Diff returns what would change on each cluster if a HelmChartProxy were applied, grouped by
// outcome. Unchanged clusters form a group. It writes nothing, neither to the plane nor to a
// cluster.
func (c *Workloads) Diff(ctx context.Context, hcp *addonsv1.HelmChartProxy) ([]Outlook, error) {
	if err := c.complete(ctx, hcp); err != nil {
		return nil, err
	}
	predictions, err := plan.Predict(ctx, c.plane.Client, hcp)
	if err != nil {
		return nil, err
	}
	all := make([]Outlook, len(predictions))
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for i, p := range predictions {
		group.Go(func() error {
			all[i] = c.outlook(ctx, p)
			return nil
		})
	}
	_ = group.Wait() // errors are part of the outlook
	return grouped(all), ctx.Err()
}

// complete applies the defaults and metadata that the API server would.
func (c *Workloads) complete(ctx context.Context, hcp *addonsv1.HelmChartProxy) error {
	desired.SetDefaults(hcp)
	existing := &addonsv1.HelmChartProxy{}
	err := c.plane.Client.Get(ctx, client.ObjectKeyFromObject(hcp), existing)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading add-on %q: %w", hcp.Name, err)
	}
	hcp.UID = existing.UID
	if hcp.Labels == nil {
		hcp.Labels = existing.Labels // releases inherit the watch label
	}
	return nil
}

// outlook returns what would change on one cluster.
func (c *Workloads) outlook(ctx context.Context, p plan.Prediction) Outlook {
	out := Outlook{Clusters: []string{p.Cluster}, Action: p.Action}
	err := p.Err
	if err == nil && p.After != nil && p.Action != plan.Unchanged {
		if p.Before != nil && p.Action == plan.Upgrade {
			out.Fields = fields(p.Before.Spec, p.After.Spec)
		}
		err = c.diff(ctx, p, &out)
	}
	if err != nil {
		out.Objects, out.Error = nil, err.Error()
	}
	return out
}

// diff asks the cluster what the tool would change there.
func (c *Workloads) diff(ctx context.Context, p plan.Prediction, out *Outlook) error {
	t, err := c.tool(p.After)
	if err != nil {
		return err
	}
	want, err := c.input.Want(ctx, p.After)
	if err != nil {
		return err
	}
	if want.Resolved, err = c.packages.Resolve(ctx, want.Package); err != nil {
		return err
	}
	out.Version = want.Resolved.Version
	cluster, err := c.open.Get(ctx, index.ClusterKey(p.After))
	if err != nil {
		return err
	}
	changes, err := t.Diff(ctx, cluster, want)
	generated := ""
	if _, ok := p.After.Annotations[addonsv1.GeneratedNameAnnotation]; ok {
		generated = want.ID.Name
	}
	out.Objects = objects(changes, generated)
	if err != nil && generated != "" {
		err = errors.New(strings.ReplaceAll(err.Error(), generated, releaseName))
	}
	return err
}

func objects(changes []tool.Change, generated string) []Object {
	var out []Object
	for _, change := range changes {
		o := Object{
			Action: change.Action, Kind: change.Object.Kind, Namespace: change.Object.Namespace, Name: change.Object.Name, Diff: change.Diff,
		}
		if generated != "" {
			o.Name, o.Diff = strings.ReplaceAll(o.Name, generated, releaseName), strings.ReplaceAll(o.Diff, generated, releaseName)
		}
		out = append(out, o)
	}
	return out
}

// fields returns the names of fields that differ, without their values, which may be secret.
func fields(a, b addonsv1.HelmReleaseProxySpec) []string {
	before, after := asMap(a), asMap(b)
	names := maps.Clone(before)
	maps.Copy(names, after)
	maps.DeleteFunc(names, func(name string, _ any) bool { return reflect.DeepEqual(before[name], after[name]) })
	return slices.Sorted(maps.Keys(names))
}

func asMap(spec addonsv1.HelmReleaseProxySpec) map[string]any {
	out := map[string]any{}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err) // every field of a spec can be encoded
	}
	return out
}

// grouped merges clusters with the same outlook. Groups with changes come first, errors last.
func grouped(all []Outlook) []Outlook {
	var out []Outlook
	for _, o := range all {
		at := slices.IndexFunc(out, func(other Outlook) bool {
			other.Clusters = o.Clusters
			return reflect.DeepEqual(other, o)
		})
		if at < 0 {
			out = append(out, o)
		} else {
			out[at].Clusters = append(slices.Clip(out[at].Clusters), o.Clusters...)
		}
	}
	rank := func(o Outlook) int {
		switch {
		case o.Error != "":
			return 2
		case o.Changes():
			return 0
		default:
			return 1
		}
	}
	slices.SortStableFunc(out, func(a, b Outlook) int { return rank(a) - rank(b) })
	return out
}
