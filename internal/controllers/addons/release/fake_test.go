package release_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// fakeTool keeps releases in memory, and reports changes as a cluster's watches do.
type fakeTool struct {
	tell func(workload.Event)

	mu       sync.Mutex
	releases map[string]tool.State
	wants    map[string]tool.Want
	// users are the users that releases were applied as.
	users   map[string]string
	calls   []string
	busy    map[string]bool
	clashes int
	// fail is the result of Apply by release name, and hold what it waits for.
	fail map[string]error
	hold map[string]chan struct{}
	// health and drift are the results by release name.
	health map[string]tool.Health
	drift  map[string][]tool.Change
	stamp  int
}

func newFakeTool() *fakeTool {
	return &fakeTool{
		releases: map[string]tool.State{}, wants: map[string]tool.Want{}, users: map[string]string{}, busy: map[string]bool{}, fail: map[string]error{},
		hold: map[string]chan struct{}{}, health: map[string]tool.Health{}, drift: map[string][]tool.Change{},
	}
}

func where(c *workload.Cluster, id tool.ID) string {
	return fmt.Sprintf("%s %s/%s", c.Key(), id.Namespace, id.Name)
}

func (f *fakeTool) Observe(c *workload.Cluster, id tool.ID) (tool.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.releases[where(c, id)], nil
}

// begin records a call, and whether it overlaps another one for the same release.
func (f *fakeTool) begin(do string, c *workload.Cluster, id tool.ID) (hold chan struct{}, end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := where(c, id)
	f.calls = append(f.calls, do+" "+id.Name)
	if f.busy[key] {
		f.clashes++
	}
	f.busy[key] = true
	return f.hold[id.Name], func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy[key] = false
	}
}

func (f *fakeTool) Apply(ctx context.Context, c *workload.Cluster, want tool.Want) (tool.State, error) {
	do := "apply"
	if want.Correct {
		do = "correct"
	}
	hold, end := f.begin(do, c, want.ID)
	defer end()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return tool.State{}, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail[want.ID.Name]; err != nil {
		return tool.State{}, err
	}
	if want.Correct {
		delete(f.drift, want.ID.Name)
		return f.releases[where(c, want.ID)], nil
	}
	f.wants[where(c, want.ID)] = want
	f.users[want.ID.Name] = c.Config().Impersonate.UserName
	return f.put(c, want.ID, f.releases[where(c, want.ID)].Revision+1), nil
}

// put creates a revision, and reports it.
func (f *fakeTool) put(c *workload.Cluster, id tool.ID, revision int) tool.State {
	f.stamp++
	state := tool.State{Found: true, Revision: revision, Status: tool.Deployed, Stamp: fmt.Sprint(f.stamp)}
	f.releases[where(c, id)] = state
	go f.tell(recordOf(c.Key(), id))
	return state
}

func recordOf(cluster client.ObjectKey, id tool.ID) workload.Event {
	return workload.Event{Cluster: cluster, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: id.Namespace, Labels: map[string]string{"owner": "helm", "name": id.Name},
	}}}
}

// objectOf returns a changed object of a release.
func objectOf(cluster client.ObjectKey, id tool.ID) workload.Event {
	return workload.Event{Cluster: cluster, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{"meta.helm.sh/release-name": id.Name, "meta.helm.sh/release-namespace": id.Namespace},
	}}}
}

func (f *fakeTool) Remove(_ context.Context, c *workload.Cluster, want tool.Want) error {
	_, end := f.begin("remove", c, want.ID)
	defer end()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.releases, where(c, want.ID))
	go f.tell(recordOf(c.Key(), want.ID))
	return nil
}

func (f *fakeTool) Diff(_ context.Context, c *workload.Cluster, want tool.Want) ([]tool.Change, error) {
	_, end := f.begin("diff", c, want.ID)
	defer end()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drift[want.ID.Name], nil
}

func (f *fakeTool) Health(_ context.Context, c *workload.Cluster, want tool.Want) (tool.Health, error) {
	_, end := f.begin("health", c, want.ID)
	defer end()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health[want.ID.Name], nil
}

func (f *fakeTool) Revert(_ context.Context, c *workload.Cluster, want tool.Want, _ int) (tool.State, error) {
	_, end := f.begin("revert", c, want.ID)
	defer end()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.put(c, want.ID, f.releases[where(c, want.ID)].Revision+1), nil
}

func (f *fakeTool) History(context.Context, *workload.Cluster, tool.ID) ([]tool.Revision, error) {
	return nil, nil
}

// set changes the behavior of the tool.
func (f *fakeTool) set(change func(*fakeTool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// did returns the calls for a release.
func (f *fakeTool) did(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, call := range f.calls {
		var do, release string
		if _, err := fmt.Sscan(call, &do, &release); err == nil && release == name {
			out = append(out, do)
		}
	}
	return out
}

func (f *fakeTool) user(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.users[name]
}

func (f *fakeTool) want(cluster client.ObjectKey, namespace, name string) tool.Want {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wants[fmt.Sprintf("%s %s/%s", cluster, namespace, name)]
}

// fakePackages has every chart but one.
type fakePackages struct{}

func (fakePackages) Resolve(_ context.Context, ref artifact.Ref) (artifact.Resolved, error) {
	if ref.Name == "unknown" {
		return artifact.Resolved{}, fmt.Errorf("looking for chart %q: %w", ref.Name, artifact.ErrNotFound)
	}
	if ref.Access.Password == "wrong" {
		return artifact.Resolved{}, errors.Join(artifact.ErrForbidden)
	}
	return artifact.Resolved{Version: ref.Version, Digest: "sha256:" + ref.Name + ref.Version}, nil
}

func (fakePackages) Fetch(context.Context, artifact.Ref, artifact.Resolved) ([]byte, error) {
	return nil, nil
}
