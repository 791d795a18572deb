package web

import (
	"context"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// Detail is what the page of a cluster shows.
type Detail struct {
	Row  *Row           `json:"row"`
	Tree *Node          `json:"tree"`
	Why  inspect.Answer `json:"why"`
	// Operation is the last change, or the creation.
	Operation inspect.Operation `json:"operation"`
	// Spec is the spec of the Cluster as YAML.
	Spec     string        `json:"spec"`
	Machines []MachineItem `json:"machines"`
	AddOns   []Release     `json:"addOns"`
	Packages []PackageItem `json:"packages"`
	// Actions are what can be done with the cluster.
	Actions []Action `json:"actions"`
	// Hidden means that the user may not read some objects.
	Hidden bool `json:"hidden,omitempty"`
}

// Node is an object of a cluster with the objects below it.
type Node struct {
	*inspect.Node

	Ready bool `json:"ready"`
	// Unmet are the conditions that must be met for the object to be ready, and are not.
	Unmet []string `json:"unmet,omitempty"`
	// Remedy is what to do if the object is not ready.
	Remedy   string  `json:"remedy,omitempty"`
	Children []*Node `json:"children,omitempty"`
}

func nodeOf(n, root *inspect.Node, now time.Time) *Node {
	out := &Node{Node: n, Ready: n.Well(), Remedy: n.Remedy(root, now)}
	for _, c := range n.Conditions {
		if c.Status != metav1.ConditionTrue && n.Counts(c.Type) {
			out.Unmet = append(out.Unmet, c.Type)
		}
	}
	for _, child := range n.Children {
		out.Children = append(out.Children, nodeOf(child, root, now))
	}
	return out
}

// PackageItem is a package of a cluster.
type PackageItem struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	Version   string `json:"version,omitempty"`
	Target    string `json:"target,omitempty"`
	State     string `json:"state"`
	Detail    string `json:"detail,omitempty"`
	Drifted   bool   `json:"drifted,omitempty"`
}

// keyOf returns the cluster that a request is about.
func keyOf(r *http.Request) Key {
	return Key{Kind: r.PathValue("kind"), Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// getCluster answers from the caches, but for what the user may do, which the plane decides.
func (v *View) getCluster(w http.ResponseWriter, r *http.Request) {
	detail, err := v.detail(r.Context(), keyOf(r))
	respond(w, detail, err)
}

func (v *View) detail(ctx context.Context, key Key) (*Detail, error) {
	described, plain, o := v.cluster(key)
	if o == nil {
		return nil, &inspect.NotFoundError{Kind: "cluster", Namespace: key.Namespace, Name: key.Name}
	}
	root := v.tree(described, plain, o)
	now := v.now()
	out := &Detail{Tree: nodeOf(root, root, now), Hidden: o.Hidden, AddOns: []Release{}, Packages: []PackageItem{}}
	out.Row, _ = v.row(key, now)
	out.Why = inspect.Why(root, now)
	out.Operation = inspect.LastOperation(root, specChanged(described, plain, o))
	out.Machines = machinesOf(o)
	out.Spec = specOf(described, plain)
	for i := range o.Releases.Items {
		out.AddOns = append(out.AddOns, releaseOf(&o.Releases.Items[i]))
	}
	drifted := v.driftedReleases(key.Name)
	for _, p := range of[*packagesv1.Package](v.stores[kindPackages], "", key.Name) {
		out.Packages = append(out.Packages, PackageItem{
			Namespace: p.Namespace, Name: p.Name, Package: p.Spec.PackageName, Version: p.Status.CurrentVersion,
			Target: p.Status.TargetVersion, State: string(p.Status.State), Detail: p.Status.Detail, Drifted: drifted[client.ObjectKeyFromObject(p)],
		})
	}
	out.Actions = v.actions(ctx, target{key: key, described: described, plain: plain, objects: o})
	return out, nil
}

// specChanged returns when somebody last changed what a cluster should be.
func specChanged(described *anywherev1.Cluster, plain *clusterv1.Cluster, o *inspect.Objects) metav1.Time {
	if described != nil {
		return inspect.SpecChanged(described)
	}
	last := inspect.SpecChanged(plain)
	if plain.Spec.Topology.IsDefined() {
		return last // its ClusterClass writes the others
	}
	latest := func(o metav1.Object) {
		if at := inspect.SpecChanged(o); last.Before(&at) {
			last = at
		}
	}
	for i := range o.ControlPlanes.Items {
		latest(&o.ControlPlanes.Items[i])
	}
	for i := range o.Workers.Items {
		latest(&o.Workers.Items[i])
	}
	return last
}

// specOf returns the spec of a Cluster as YAML.
func specOf(described *anywherev1.Cluster, plain *clusterv1.Cluster) string {
	var value any
	if described != nil {
		value = struct {
			APIVersion string                 `json:"apiVersion"`
			Kind       string                 `json:"kind"`
			Spec       anywherev1.ClusterSpec `json:"spec"`
		}{anywherev1.GroupVersion.String(), "Cluster", described.Spec}
	} else {
		value = struct {
			APIVersion string                `json:"apiVersion"`
			Kind       string                `json:"kind"`
			Spec       clusterv1.ClusterSpec `json:"spec"`
		}{clusterv1.GroupVersion.String(), "Cluster", plain.Spec}
	}
	data, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(data)
}

// getEvents reads the history of a cluster from the plane: events are not watched.
func (v *View) getEvents(w http.ResponseWriter, r *http.Request) {
	key := keyOf(r)
	described, plain, o := v.cluster(key)
	if o == nil {
		report(w, &inspect.NotFoundError{Kind: "cluster", Namespace: key.Namespace, Name: key.Name})
		return
	}
	timeline, err := v.plane.History(r.Context(), v.tree(described, plain, o), key.Namespace)
	if n := len(timeline.Entries); n > maxEntries {
		timeline.Entries = timeline.Entries[n-maxEntries:]
	}
	respond(w, timeline, err)
}

// maxEntries bounds the history in a response.
const maxEntries = 500

// may asks the plane whether the user may do something.
func (v *View) may(ctx context.Context, verb, group, resource string, key Key) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Namespace: key.Namespace, Name: key.Name,
		},
	}}
	return v.plane.Client.Create(ctx, review) == nil && review.Status.Allowed
}
