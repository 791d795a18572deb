package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/install/about"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// Names of actions.
const (
	actPause      = "pause"
	actResume     = "resume"
	actScale      = "scale"
	actUpgrade    = "upgrade"
	actDelete     = "delete"
	actKubeconfig = "kubeconfig"
)

// Reasons why an action can't be used.
const (
	inGit       = "The spec of this cluster is in Git. Commit the change there: Flux would revert it here."
	selfManaged = "A management cluster is changed with `drover upgrade cluster` and `drover delete cluster`, which move it to a bootstrap plane first."
	notAllowed  = "You may not do this. Ask an administrator for the role drover-cluster-creator in the namespace."
	isDeleting  = "The cluster is being deleted."
)

// Action is something that can be done with a cluster.
type Action struct {
	Name string `json:"name"`
	// Unusable is why it can't be used here, or empty.
	Unusable string `json:"unusable,omitempty"`
	// Groups are the groups of machines that can be scaled.
	Groups []Group `json:"groups,omitempty"`
	// Versions are the versions of Kubernetes that the cluster can be upgraded to.
	Versions []string `json:"versions,omitempty"`
}

// target is the cluster that an action is about. One of described and plain is set.
type target struct {
	key       Key
	described *anywherev1.Cluster
	plain     *clusterv1.Cluster
	objects   *inspect.Objects
}

// gvr returns the group and resource of the Cluster.
func (t target) group() string {
	if t.described != nil {
		return anywherev1.GroupVersion.Group
	}
	return clusterv1.GroupVersion.Group
}

func (t target) paused() bool {
	if t.described != nil {
		return t.described.IsPaused()
	}
	return ptr.Deref(t.plain.Spec.Paused, false)
}

func (t target) deleting() bool {
	if t.described != nil {
		return !t.described.DeletionTimestamp.IsZero()
	}
	return !t.plain.DeletionTimestamp.IsZero()
}

// blocked returns why the spec can't be changed here, or "".
func (t target) blocked() string {
	switch c := t.described; {
	case t.deleting():
		return isDeleting
	case c == nil:
		return ""
	case c.IsSelfManaged():
		return selfManaged
	case c.Spec.GitOpsRef != nil:
		return inGit
	}
	return ""
}

// actions returns what can be done with a cluster, and asks the plane what the user may do.
func (v *View) actions(ctx context.Context, t target) []Action {
	patch, remove := v.may(ctx, "patch", t.group(), "clusters", t.key), v.may(ctx, "delete", t.group(), "clusters", t.key)
	unless := func(allowed bool, blocked string) string {
		if !allowed {
			return notAllowed
		}
		return blocked
	}
	pause := Action{Name: actPause, Unusable: unless(patch, "")}
	if t.paused() {
		pause.Name = actResume
	}
	out := []Action{pause}
	if groups := t.groups(); len(groups) > 0 {
		out = append(out, Action{Name: actScale, Groups: groups, Unusable: unless(patch, t.blocked())})
	}
	if t.described != nil {
		upgrade := Action{Name: actUpgrade, Unusable: unless(patch, t.blocked())}
		if runs, err := v.offered(ctx); err == nil {
			upgrade.Versions = newer(t.described.Spec.KubernetesVersion, runs.Kubernetes)
		}
		out = append(out, upgrade)
	}
	return append(out, v.kubeconfigAction(ctx, t), Action{Name: actDelete, Unusable: unless(remove, t.blocked())})
}

// offered describes the versions that the plane offers.
func (v *View) offered(ctx context.Context) (about.Plane, error) {
	return about.Read(ctx, v.plane.Client)
}

// newer returns the minor versions among releases that follow a minor version directly or are the
// same.
func newer(current string, releases []string) []string {
	var major, minor int
	if _, err := fmt.Sscanf(current, "%d.%d", &major, &minor); err != nil {
		return nil
	}
	var out []string
	for _, release := range releases {
		var a, b int
		if _, err := fmt.Sscanf(release, "v%d.%d", &a, &b); err != nil {
			continue
		}
		if next := fmt.Sprintf("%d.%d", a, b); a == major && b == minor+1 && !slices.Contains(out, next) {
			out = append(out, next)
		}
	}
	return out
}

// request is what the page asks for.
type request struct {
	Action string `json:"action"`
	// Group and Count are those of a scaling.
	Group string `json:"group,omitempty"`
	Count *int   `json:"count,omitempty"`
	// Version is that of an upgrade, such as 1.36.
	Version string `json:"version,omitempty"`
	// Revision of an add-on.
	Revision int64 `json:"revision,omitempty"`
	// Confirm is the name of the cluster to delete, as typed.
	Confirm string `json:"confirm,omitempty"`
	// State is that of the plan that the user has seen.
	State string `json:"state,omitempty"`
}

// Plan is what an action would change.
type Plan struct {
	// Command does the same in a terminal.
	Command string                 `json:"command"`
	Changes []lifecycle.Difference `json:"changes"`
	// Notes say what else happens.
	Notes []string `json:"notes,omitempty"`
	// State identifies the spec that the plan is about.
	State string `json:"state"`
}

// change is a JSON patch of one object, or its deletion.
type change struct {
	object  *unstructured.Unstructured // kind and name
	patch   []operation
	deletes bool
	notes   []string
	// same is the command that makes the same change, if there is a better one than kubectl.
	same string
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// source turns what the page asks for into a change.
type source func(*http.Request, request) (*change, error)

// planAction and doAction are about a cluster.
func (v *View) planAction(w http.ResponseWriter, r *http.Request) {
	v.answerPlan(w, r, v.clusterChange)
}

func (v *View) doAction(w http.ResponseWriter, r *http.Request) { v.answerDo(w, r, v.clusterChange) }

// answerPlan returns what an action would change, from a dry run of the plane.
func (v *View) answerPlan(w http.ResponseWriter, r *http.Request, from source) {
	plan, err := prepare(r, from, func(ctx context.Context, c *change, _ request) (*Plan, error) {
		return v.plan(ctx, c)
	})
	respond(w, plan, err)
}

// answerDo does what the user has seen the plan of.
func (v *View) answerDo(w http.ResponseWriter, r *http.Request, from source) {
	done, err := prepare(r, from, func(ctx context.Context, c *change, asked request) (*Plan, error) {
		uid, generation, err := parseState(asked.State)
		if err != nil {
			return nil, &usageError{"the request doesn't say which plan it is about", "Ask for the plan first."}
		}
		if c.deletes && asked.Confirm != c.object.GetName() {
			return nil, &usageError{fmt.Sprintf("the name that was typed is not %q", c.object.GetName()), "Type the name of the cluster."}
		}
		return &Plan{Command: c.command(), Changes: []lifecycle.Difference{}}, v.do(ctx, c, uid, generation)
	})
	respond(w, done, err)
}

// prepare reads a request.
func prepare(r *http.Request, from source, then func(context.Context, *change, request) (*Plan, error)) (*Plan, error) {
	var asked request
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return nil, &usageError{"the request is not a known action: " + err.Error(), "Reload the page."}
	}
	c, err := from(r, asked)
	if err != nil {
		return nil, err
	}
	return then(r.Context(), c, asked)
}

func (v *View) clusterChange(r *http.Request, asked request) (*change, error) {
	key := keyOf(r)
	described, plain, o := v.cluster(key)
	if o == nil {
		return nil, &inspect.NotFoundError{Kind: "cluster", Namespace: key.Namespace, Name: key.Name}
	}
	return (target{key: key, described: described, plain: plain, objects: o}).change(asked)
}

// change returns the patch for an action.
func (t target) change(asked request) (*change, error) {
	c := &change{object: t.object()}
	if blocked := t.blocked(); blocked != "" && asked.Action != actPause && asked.Action != actResume {
		return nil, &usageError{blocked, ""}
	}
	switch asked.Action {
	case actPause, actResume:
		c.patch = t.pausing(asked.Action == actPause)
		return c, nil
	case actScale:
		return c, t.scaling(c, asked)
	case actUpgrade:
		if t.described == nil || asked.Version == "" {
			return nil, &usageError{"choose a version of Kubernetes", "Clusters without a Cluster of Drover are upgraded by their manifests."}
		}
		c.patch = []operation{{"replace", "/spec/kubernetesVersion", asked.Version}}
		c.notes = upgradeNotes(&t.described.Spec)
		return c, nil
	case actDelete:
		c.deletes = true
		c.notes = []string{fmt.Sprintf("Deletes %d machines and everything on them. This can't be undone.", len(t.objects.Machines.Items))}
		if t.described != nil {
			c.notes = append(c.notes, "The datacenter and machine configs stay; `drover delete cluster` deletes those that are unused, too.")
		}
		return c, nil
	}
	return nil, &usageError{fmt.Sprintf("unknown action %q", asked.Action), "Reload the page."}
}

// upgradeNotes say how machines get a new version of Kubernetes.
func upgradeNotes(s *anywherev1.ClusterSpec) []string {
	var inPlace, replaced []string
	add := func(name string, strategy anywherev1.UpgradeRolloutStrategyType) {
		if strategy == anywherev1.InPlaceStrategyType {
			inPlace = append(inPlace, name)
			return
		}
		replaced = append(replaced, name)
	}
	add("the control plane", ptr.Deref(s.ControlPlaneConfiguration.UpgradeRolloutStrategy, anywherev1.ControlPlaneUpgradeRolloutStrategy{}).Type)
	for _, g := range s.WorkerNodeGroupConfigurations {
		if g.KubernetesVersion == nil { // Others keep their version.
			add("worker group "+g.Name, ptr.Deref(g.UpgradeRolloutStrategy, anywherev1.WorkerNodesUpgradeRolloutStrategy{}).Type)
		}
	}
	out := []string{"The control plane comes first, then the workers."}
	if len(replaced) > 0 {
		out = append(out, "Machines are replaced one after another: "+text.FirstN(replaced, namesShown)+".")
	}
	if len(inPlace) > 0 {
		out = append(out, "Machines are upgraded in place, one at a time: "+text.FirstN(inPlace, namesShown)+".")
	}
	return out
}

// namesShown bounds how many names a note lists.
const namesShown = 5

// object returns the Cluster without its content.
func (t target) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(clusterv1.GroupVersion.String())
	if t.described != nil {
		u.SetAPIVersion(anywherev1.GroupVersion.String())
	}
	u.SetKind("Cluster")
	u.SetNamespace(t.key.Namespace)
	u.SetName(t.key.Name)
	return u
}

// pausing returns the patch that pauses or resumes the reconciliation.
func (t target) pausing(pause bool) []operation {
	if t.described == nil {
		return []operation{{"add", "/spec/paused", pause}}
	}
	switch {
	case !pause && !t.paused():
		return []operation{}
	case !pause:
		return []operation{{Op: "remove", Path: annotationPath(anywherev1.PausedAnnotation)}}
	}
	return annotating(t.described, anywherev1.PausedAnnotation, "true")
}

// annotating returns the patch that sets an annotation.
func annotating(o client.Object, key, value string) []operation {
	if len(o.GetAnnotations()) == 0 {
		return []operation{{"add", "/metadata/annotations", map[string]string{key: value}}}
	}
	return []operation{{"add", annotationPath(key), value}}
}

func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
}

// plan submits a change as a dry run, and compares what it returns.
func (v *View) plan(ctx context.Context, c *change) (*Plan, error) {
	before := c.object.DeepCopy()
	if err := v.plane.Client.Get(ctx, client.ObjectKeyFromObject(before), before); err != nil {
		return nil, err
	}
	plan := &Plan{Command: c.command(), Changes: []lifecycle.Difference{}, Notes: c.notes, State: stateOf(before)}
	if c.deletes {
		return plan, v.plane.Client.Delete(ctx, before.DeepCopy(), client.DryRunAll)
	}
	after := before.DeepCopy()
	if err := v.plane.Client.Patch(ctx, after, c.body(c.patch), client.DryRunAll); err != nil {
		return nil, err
	}
	name := c.object.GetKind() + "/" + c.object.GetName()
	plan.Changes = append(plan.Changes, lifecycle.Compare(name, before, after)...)
	return plan, nil
}

// do makes a change, unless the spec differs from the one in the plan.
func (v *View) do(ctx context.Context, c *change, uid types.UID, generation int64) error {
	if c.deletes {
		return v.plane.Client.Delete(ctx, c.object, client.Preconditions{UID: &uid})
	}
	tests := []operation{{"test", "/metadata/uid", uid}, {"test", "/metadata/generation", generation}}
	return v.plane.Client.Patch(ctx, c.object, c.body(append(tests, c.patch...)), client.FieldOwner(anywherev1.FieldManagerCLI))
}

// stateOf identifies an object and its spec, whatever its status is.
func stateOf(o client.Object) string { return fmt.Sprintf("%s.%d", o.GetUID(), o.GetGeneration()) }

func parseState(state string) (types.UID, int64, error) {
	uid, number, _ := strings.Cut(state, ".")
	generation, err := strconv.ParseInt(number, 10, 64)
	return types.UID(uid), generation, err
}

// body returns operations as a patch.
func (c *change) body(all []operation) client.Patch {
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // operations are plain data
	}
	return client.RawPatch(types.JSONPatchType, data)
}

// command returns the command that makes the same change.
func (c *change) command() string {
	if c.same != "" {
		return c.same
	}
	resource := strings.ToLower(c.object.GetKind()) + "s." + c.object.GroupVersionKind().Group
	verb := "patch"
	if c.deletes {
		verb = "delete"
	}
	command := fmt.Sprintf("drover kubectl %s %s %s -n %s", verb, resource, c.object.GetName(), c.object.GetNamespace())
	if c.deletes {
		return command
	}
	data, err := json.Marshal(c.patch)
	if err != nil {
		panic(err) // operations are plain data
	}
	return command + " --type json -p '" + string(data) + "'"
}
