package web

import (
	"cmp"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

// topicGit is the topic of the page about Git.
const topicGit = "git"

// maxCommits bounds the changes of a repository in a response.
const maxCommits = 200

// Repository is what became of the commits of a repository.
type Repository struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	URL       string `json:"url,omitempty"`
	Branch    string `json:"branch"`
	// Revision is the newest commit that Flux has fetched.
	Revision string `json:"revision,omitempty"`
	State    string `json:"state"`
	Message  string `json:"message,omitempty"`
	// Unconfirmed is set if the deletion of a cluster waits for `drover gitops confirm`.
	Unconfirmed bool           `json:"unconfirmed,omitempty"`
	Clusters    []InRepository `json:"clusters"`
	// Changes are those that Drover commits, newest first.
	Changes []Commit `json:"changes"`
}

// InRepository is a cluster whose spec is in a repository.
type InRepository struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Revision string          `json:"revision,omitempty"`
	Progress gitops.Progress `json:"progress"`
	State    string          `json:"state"`
	Message  string          `json:"message,omitempty"`
}

// Commit is a change that Drover commits for a user.
type Commit struct {
	Name     string          `json:"name"`
	Cluster  string          `json:"cluster"`
	ID       string          `json:"id"`
	Action   string          `json:"action"`
	Command  string          `json:"command,omitempty"`
	User     string          `json:"user,omitempty"`
	Commit   string          `json:"commit,omitempty"`
	Progress gitops.Progress `json:"progress"`
	Message  string          `json:"message,omitempty"`
	Created  metav1.Time     `json:"created"`
}

// git is what is known about the commits of a cluster.
type git struct {
	config  *anywherev1.FluxConfig // without a name if there is none
	changes []droverv1.GitChange
	applied *unstructured.Unstructured
}

// inGit returns what the caches have about the commits of a cluster.
func (v *View) inGit(c *anywherev1.Cluster) git {
	out := git{config: &anywherev1.FluxConfig{}}
	ref := c.Spec.GitOpsRef
	if ref == nil || ref.Kind != anywherev1.FluxConfigKind {
		return out
	}
	for _, informer := range v.stores[kindFluxConfigs].all() {
		if found, exists, err := informer.GetStore().GetByKey(c.Namespace + "/" + ref.Name); err == nil && exists {
			out.config = found.(*anywherev1.FluxConfig) // informers hold one kind
		}
	}
	copyItems(&out.changes, of[*droverv1.GitChange](v.stores[kindGitChanges], c.Namespace, c.Name))
	for _, k := range of[*unstructured.Unstructured](v.stores[kindApplied], c.Namespace, c.Name) {
		out.applied = k
	}
	return out
}

// revision returns the commit that Flux has applied, if that is known.
func (g git) revision() string {
	if g.applied == nil {
		return ""
	}
	return gitops.AppliedCommit(g.applied)
}

// digest adds the versions of the objects.
func (g git) digest(d *digest) {
	d.add(g.config)
	addAll(d, g.changes)
	if g.applied != nil {
		d.add(g.applied)
	}
}

// getGit answers from the caches.
func (v *View) getGit(w http.ResponseWriter, _ *http.Request) {
	o := gitops.Objects{Unread: v.stores[kindApplied].hidden() && v.runsFlux()}
	for _, c := range list[*anywherev1.Cluster](v.stores[kindClusters]) {
		o.Clusters = append(o.Clusters, *c)
	}
	for _, k := range list[*unstructured.Unstructured](v.stores[kindApplied]) {
		if k.GetLabels()[anywherev1.GitClusterLabel] != "" {
			o.Applied = append(o.Applied, *k)
		}
	}
	for _, g := range list[*droverv1.GitChange](v.stores[kindGitChanges]) {
		o.Changes = append(o.Changes, *g)
	}
	out := []Repository{}
	for _, c := range list[*anywherev1.FluxConfig](v.stores[kindFluxConfigs]) {
		out = append(out, repositoryOf(c, o))
	}
	writeJSON(w, http.StatusOK, out)
}

// runsFlux reports whether the plane has the kinds of Flux.
func (v *View) runsFlux() bool {
	runs, err := (&gitops.Plane{Plane: v.plane}).RunsFlux()
	return err != nil || runs
}

func repositoryOf(c *anywherev1.FluxConfig, o gitops.Objects) Repository {
	s := gitops.Summarize(c, o)
	out := Repository{
		Namespace: s.Namespace, Name: s.FluxConfig, URL: s.URL, Branch: s.Branch, Revision: s.Revision, State: s.State, Message: s.Message,
		Unconfirmed: s.Unconfirmed, Clusters: []InRepository{}, Changes: []Commit{},
	}
	for _, one := range s.Clusters {
		out.Clusters = append(out.Clusters, InRepository{
			ID: Key{drover, c.Namespace, one.Name}.String(), Name: one.Name, Revision: one.Revision, Progress: one.Progress(), State: one.State, Message: one.Message,
		})
	}
	for i := range o.Changes {
		if g := &o.Changes[i]; g.Namespace == c.Namespace && g.Spec.FluxConfig == c.Name {
			out.Changes = append(out.Changes, commitOf(g))
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b Commit) int { return cmp.Or(b.Created.Compare(a.Created.Time), cmp.Compare(a.Name, b.Name)) })
	out.Changes = out.Changes[:min(len(out.Changes), maxCommits)]
	return out
}

func commitOf(g *droverv1.GitChange) Commit {
	out := Commit{
		Name: g.Name, Cluster: g.Spec.Cluster, ID: Key{drover, g.Namespace, g.Spec.Cluster}.String(), Action: string(g.Spec.Action), Command: g.Spec.Command,
		User: g.Spec.RequestedBy, Commit: g.Status.Commit, Created: g.CreationTimestamp,
	}
	out.Progress, out.Message = gitops.ProgressOf(g)
	return out
}
