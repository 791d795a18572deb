package fleet

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// source returns the ExternalArtifact of a cluster, or nil.
func (w *world) source(name string) *sourcev1.ExternalArtifact {
	w.Helper()
	e := &sourcev1.ExternalArtifact{}
	err := w.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, e)
	w.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return e
}

// expectArchive makes sure that a source points at the newest archive.
func (w *world) expectArchive(e *sourcev1.ExternalArtifact) {
	w.Helper()
	a, newest := e.Status.Artifact, w.repository().Status.Artifact
	if a == nil || a.URL != newest.URL || a.Path != newest.Path || a.Digest != newest.Digest || a.Metadata[originKey] != newest.Revision {
		w.Errorf("source %q has artifact %+v, want that of %+v", e.Name, a, newest)
	}
}

func TestACommitGivesARevisionOnlyToClustersThatItChanges(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	dev, prod, kustomizations := w.source("dev"), w.source("prod"), w.versions()
	w.expectArchive(dev)
	if !strings.HasPrefix(dev.Status.Artifact.Revision, "files@sha256:") || dev.Status.Artifact.Revision == prod.Status.Artifact.Revision {
		t.Errorf("revisions are %s and %s", dev.Status.Artifact.Revision, prod.Status.Artifact.Revision)
	}
	files := repository{}.with("dev", "prod")
	files[dirs+"dev/eksa-cluster.yaml"] = strings.Replace(specOf("dev"), "count: 1}]", "count: 2}]", 1)
	w.push(files)
	changed, same := w.source("dev"), w.source("prod")
	w.expectArchive(changed)
	w.expectArchive(same)
	if changed.Status.Artifact.Revision == dev.Status.Artifact.Revision {
		t.Error("the cluster that changed has its old revision")
	}
	if same.Status.Artifact.Revision != prod.Status.Artifact.Revision {
		t.Error("the cluster that didn't change has another revision")
	}
	if got := w.versions(); got != kustomizations {
		t.Errorf("Kustomizations were written: %s, before %s", got, kustomizations)
	}
}

func TestASourceFollowsAnArchiveThatMoves(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev"))
	before := w.source("dev").Status.Artifact.Revision
	r := w.repository()
	r.Status.Artifact.URL += "?moved"
	w.must(w.Status().Update(t.Context(), r))
	w.reconcile()
	w.expectArchive(w.source("dev"))
	if got := w.source("dev").Status.Artifact.Revision; got != before {
		t.Errorf("revision %s, before %s", got, before)
	}
}

// TestTheSourceOfAClusterThatIsKeptFollowsTheArchive covers a broken spec, and a removal that is
// not confirmed.
func TestTheSourceOfAClusterThatIsKeptFollowsTheArchive(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	w.create("prod", anywherev1.Ready)
	before := map[string]*sourcev1.ExternalArtifact{"dev": w.source("dev"), "prod": w.source("prod")}
	w.push(repository{dirs + "dev/eksa-cluster.yaml": specOf("dev") + "\n---\n["})
	newest := w.repository().Status.Artifact
	for name, was := range before {
		is := w.source(name).Status.Artifact
		if is.URL != newest.URL || is.Digest != newest.Digest {
			t.Errorf("the source of %s points at %s, want %s", name, is.URL, newest.URL)
		}
		if is.Revision != was.Status.Artifact.Revision || is.Metadata[originKey] != was.Status.Artifact.Metadata[originKey] {
			t.Errorf("the source of %s has revision %s of %s", name, is.Revision, is.Metadata[originKey])
		}
	}
}

func TestSourcesGoWithTheirClusters(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	w.push(repository{}.with("dev"))
	if w.source("dev") == nil || w.source("prod") != nil {
		t.Errorf("sources are %v and %v", w.source("dev"), w.source("prod"))
	}
	w.must(w.DeleteAllOf(t.Context(), &kustomizev1.Kustomization{}, client.InNamespace(w.ns)))
	w.must(w.Delete(t.Context(), w.repository()))
	w.reconcile()
	if w.source("dev") != nil {
		t.Error("the source outlives its repository")
	}
}

func TestASourceOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.must(w.Create(t.Context(), &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "dev"}}))
	w.push(repository{}.with("dev", "prod"))
	w.expectNames("with a foreign source", "prod")
	if got := w.source("dev"); got.Status.Artifact != nil || !strings.Contains(strings.Join(w.report().Problems, ""), "Drover didn't create it") {
		t.Errorf("artifact %v, problems %q", got.Status.Artifact, w.report().Problems)
	}
}

// TestAFluxWithoutTheFeatureGateAppliesTheRepository begins with a Flux that accepts sources of
// clusters, which is then replaced.
func TestAFluxWithoutTheFeatureGateAppliesTheRepository(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev"))
	k := w.kustomizations()["dev"]
	k.Status.Conditions = []metav1.Condition{{
		Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse, Reason: "AccessDenied", Message: "gate", LastTransitionTime: metav1.Now(),
	}}
	w.must(w.Status().Update(t.Context(), &k))
	w.reconcile()
	want := kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Namespace: w.system, Name: "flux-system"}
	if got := w.kustomizations()["dev"].Spec.SourceRef; got != want {
		t.Errorf("source is %+v", got)
	}
	w.reconcile()
	if w.source("dev") != nil {
		t.Error("the source of the cluster is still there")
	}
}

func TestTheProbeAsksFluxOnce(t *testing.T) {
	for reason, want := range map[string]bool{"ArtifactFailed": true, "AccessDenied": false} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			p, err := NewProbe(w.Client, w.RESTMapper())
			w.must(err)
			ask := func() (bool, error) { return p.Accepts(t.Context(), client.ObjectKeyFromObject(w.repository())) }
			if _, err := ask(); reconcile.AsWait(err) == nil {
				t.Fatalf("without an answer: %v", err)
			}
			k := w.kustomizations()[probeName]
			k.Status.Conditions = []metav1.Condition{{
				Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "x", LastTransitionTime: metav1.Now(),
			}}
			w.must(w.Status().Update(t.Context(), &k))
			for range 2 {
				if got, err := ask(); got != want || err != nil {
					t.Errorf("accepted %t, error %v", got, err)
				}
			}
			if left := w.names(); left != "" {
				t.Errorf("Kustomization %s is left", left)
			}
			if SourceOf(&k) != client.ObjectKeyFromObject(w.repository()) || k.Labels[anywherev1.GitClusterLabel] != "" {
				t.Errorf("the probe has source %s and labels %v", SourceOf(&k), k.Labels)
			}
		})
	}
}

func TestRevisionsOfFilesAreShownAsCommits(t *testing.T) {
	artifact := &fluxmeta.Artifact{Revision: "files@sha256:b", Metadata: map[string]string{originKey: "main@sha1:2"}}
	for name, tt := range map[string]struct {
		status             kustomizev1.KustomizationStatus
		artifact           *fluxmeta.Artifact
		applied, attempted string
	}{
		"nothing is applied":            {artifact: artifact},
		"the newest files":              {kustomizev1.KustomizationStatus{LastAppliedRevision: "files@sha256:b", LastAttemptedRevision: "files@sha256:b", LastAppliedOriginRevision: "main@sha1:1"}, artifact, "main@sha1:2", "main@sha1:2"},
		"older files":                   {kustomizev1.KustomizationStatus{LastAppliedRevision: "files@sha256:a", LastAttemptedRevision: "files@sha256:b", LastAppliedOriginRevision: "main@sha1:1"}, artifact, "main@sha1:1", "main@sha1:2"},
		"a source that doesn't exist":   {kustomizev1.KustomizationStatus{LastAppliedRevision: "files@sha256:a", LastAttemptedRevision: "files@sha256:a", LastAppliedOriginRevision: "main@sha1:1"}, nil, "main@sha1:1", ""},
		"a commit, before it had files": {kustomizev1.KustomizationStatus{LastAppliedRevision: "main@sha1:2", LastAttemptedRevision: "main@sha1:2"}, artifact, "", ""},
	} {
		inCommits(&tt.status, tt.artifact)
		if tt.status.LastAppliedRevision != tt.applied || tt.status.LastAttemptedRevision != tt.attempted {
			t.Errorf("%s: applied %q, attempted %q", name, tt.status.LastAppliedRevision, tt.status.LastAttemptedRevision)
		}
	}
}
