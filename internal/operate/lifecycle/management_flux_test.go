package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/test/gittest"
)

const shepherdFile = "clusters/shepherd/eksa-system/eksa-cluster.yaml"

// gitSides are two sides with a real Git server. On the management cluster, it simulates the
// manager, which commits, and Flux, which applies what is committed unless it is suspended.
type gitSides struct {
	*twoSides

	server *gittest.HTTPS
	bare   *gittest.Repository
	remote git.Remote
	// fetched is the commit that Flux has fetched, and objects what it has for the cluster.
	fetched string
	objects [][]byte
}

func newGitSides(t *testing.T) *gitSides {
	t.Helper()
	x := &gitSides{twoSides: newTwoSides(t), server: gittest.NewHTTPS(t)}
	x.bare = x.server.Create("fleet.git")
	x.bare.Commit(gittest.Branch, map[string]string{"README.md": "The fleet\n"})
	x.repository = x.server.URL("fleet.git")
	x.remote = git.Remote{URL: x.repository, Branch: gittest.Branch, Credentials: git.Credentials{Username: gittest.Username, Password: gittest.Password, CA: x.server.CA}}
	ca := filepath.Join(x.dir, "ca.crt")
	if err := os.WriteFile(ca, x.server.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(flux.EnvUsername, gittest.Username)
	t.Setenv(flux.EnvPassword, gittest.Password)
	t.Setenv(flux.EnvCAFile, ca)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			x.playGit(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return x
}

// gitDown makes the Git server fail, and the command give up on it soon.
func (x *gitSides) gitDown(*testing.T) func() {
	const soon = 10 * time.Second
	x.last.Limits = Limits{ControlPlane: soon, Delete: soon}
	x.server.Inject(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	return func() { x.server.Inject(nil) }
}

// playGit does once what the manager and Flux do. A failure is repeated the next time.
func (x *gitSides) playGit(ctx context.Context) {
	c := x.itself.client
	secret := &corev1.Secret{}
	if c.Get(ctx, client.ObjectKey{Namespace: config.FluxNamespace, Name: anywherev1.GitCredentials}, secret) != nil {
		return
	}
	configs, changes := &anywherev1.FluxConfigList{}, &droverv1.GitChangeList{}
	if c.List(ctx, configs) != nil || c.List(ctx, changes) != nil {
		return
	}
	for i := range configs.Items {
		f := &configs.Items[i]
		connected := metav1.Condition{Type: anywherev1.RepositoryConnected, Status: metav1.ConditionTrue, Reason: anywherev1.RepositoryConnectedReason, ObservedGeneration: f.Generation}
		if apimeta.SetStatusCondition(&f.Status.Conditions, connected) {
			_ = c.Status().Update(ctx, f)
		}
		x.ensureFlux(ctx)
	}
	for i := range changes.Items {
		x.commitChange(ctx, &changes.Items[i])
	}
	x.applyTip(ctx, changes.Items)
}

// ensureFlux creates the objects with which Flux applies the management cluster.
func (x *gitSides) ensureFlux(ctx context.Context) {
	for kind, fields := range map[schema.GroupVersionKind]map[string]any{
		fluxSource:      {"interval": "1m", "url": x.repository},
		fluxApplication: {"interval": "10m", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"}},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
		u.SetGroupVersionKind(kind)
		u.SetNamespace(config.FluxNamespace)
		u.SetName(anywherev1.GitCredentials)
		u.SetLabels(map[string]string{anywherev1.GitClusterLabel: "shepherd"})
		_ = x.itself.client.Create(ctx, u)
	}
}

// suspended reports whether an object of Flux is suspended or missing.
func (x *gitSides) suspended(ctx context.Context, kind schema.GroupVersionKind) bool {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	err := x.itself.client.Get(ctx, client.ObjectKey{Namespace: config.FluxNamespace, Name: anywherev1.GitCredentials}, u)
	suspend, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	return err != nil || suspend
}

// commitChange commits a change, or reports that the Git server is down.
func (x *gitSides) commitChange(ctx context.Context, change *droverv1.GitChange) {
	if apimeta.IsStatusConditionTrue(change.Status.Conditions, droverv1.GitCommitted) {
		return
	}
	is := metav1.Condition{Type: droverv1.GitCommitted, Status: metav1.ConditionTrue, Reason: droverv1.GitCommittedReason}
	commit, err := x.push(ctx, change)
	if err != nil {
		is.Status, is.Reason, is.Message = metav1.ConditionFalse, droverv1.GitUnavailableReason, err.Error()
	}
	change.Status.Commit = commit
	if apimeta.SetStatusCondition(&change.Status.Conditions, is) {
		_ = x.itself.client.Status().Update(ctx, change)
	}
}

// push commits what a change asks for with the real server.
func (x *gitSides) push(ctx context.Context, change *droverv1.GitChange) (string, error) {
	repository, err := git.New(x.remote, git.Options{Limits: git.Limits{Timeout: 2 * time.Second}, Attempts: 1})
	if err != nil {
		return "", err
	}
	result, err := repository.Update(ctx, git.Message{Subject: change.Spec.Command}, func(files fs.FS) (map[string][]byte, error) {
		cluster := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: change.Namespace, Name: change.Spec.Cluster}}
		at, err := gitops.Detect(files, "clusters/shepherd", cluster)
		if err != nil {
			return nil, err
		}
		if change.Spec.Action == droverv1.GitRemove {
			return gitops.Remove(files, at)
		}
		var all []byte
		for _, raw := range change.Spec.Objects {
			all = append(append(all, raw.Raw...), '\n')
		}
		want, err := spec.Read(all)
		if err != nil {
			return nil, err
		}
		return gitops.Write(files, at, want)
	})
	return result.Commit, err
}

// applyTip applies the newest spec to the management cluster as Flux does, whoever changed it
// there, unless it is suspended.
func (x *gitSides) applyTip(ctx context.Context, changes []droverv1.GitChange) {
	if x.suspended(ctx, fluxSource) || x.suspended(ctx, fluxApplication) {
		return
	}
	content, found := x.inGit()
	if !found {
		return
	}
	for _, text := range content {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(text, u) != nil {
			return
		}
		u.SetLabels(map[string]string{fluxNameLabel: "flux-system"})
		if x.itself.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kustomize-controller"), client.ForceOwnership) != nil {
			return
		}
	}
	for i := range changes {
		applied := metav1.Condition{Type: droverv1.GitApplied, Status: metav1.ConditionTrue, Reason: droverv1.GitAppliedReason}
		if change := &changes[i]; apimeta.IsStatusConditionTrue(change.Status.Conditions, droverv1.GitCommitted) && apimeta.SetStatusCondition(&change.Status.Conditions, applied) {
			_ = x.itself.client.Status().Update(ctx, change)
		}
	}
}

// inGit returns the objects of the management cluster in the newest commit. It fetches only a
// commit that is new, because the server forks for each request.
func (x *gitSides) inGit() ([][]byte, bool) {
	tip, err := os.ReadFile(filepath.Join(x.bare.Dir, "refs", "heads", gittest.Branch))
	if err == nil && string(tip) != x.fetched {
		if x.objects, err = x.fetch(); err == nil {
			x.fetched = string(tip)
		}
	}
	return x.objects, err == nil && len(x.objects) > 0
}

// fetch returns the objects of the management cluster, or nothing if Git doesn't have it.
func (x *gitSides) fetch() ([][]byte, error) {
	repository, err := git.New(x.remote, git.Options{})
	if err != nil {
		return nil, err
	}
	tip, err := repository.Tip(context.Background())
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(tip.FS(), shepherdFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	want, err := spec.Read(text)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, o := range want.Objects() {
		one, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
