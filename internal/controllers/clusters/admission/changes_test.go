package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
)

// recorded returns the records of changes of configs of a cluster.
func (w *world) recorded(name string) []string {
	w.Helper()
	all := &droverv1.AuditRecordList{}
	w.must(w.List(w.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: name, droverv1.NamespaceLabel: w.ns}))
	var out []string
	for _, r := range all.Items {
		line := fmt.Sprintf("%s %s %s/%s", r.Spec.User, r.Spec.Action, r.Spec.Object.Kind, r.Spec.Object.Name)
		for _, c := range r.Spec.Changes {
			line += " " + c.Path
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// update calls the mutating webhook for an update.
func (w *world) update(was *anywherev1.Cluster, edit func(*anywherev1.Cluster)) (*anywherev1.Cluster, error) {
	w.Helper()
	old, err := json.Marshal(was)
	w.must(err)
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, UserInfo: creator()}}
	request.OldObject.Raw = old
	is := was.DeepCopy()
	edit(is)
	return is, w.Default(admission.NewContextWithRequest(w.Context(), request), is)
}

// TestChangesWaitForEarlierOnesToBeRecorded floods a Cluster faster than its changes are recorded.
func TestChangesWaitForEarlierOnesToBeRecorded(t *testing.T) {
	w := newWorld(t)
	c := w.workload("flooded")
	w.must(w.Default(w.as(creator()), c))
	c.Generation = 1
	accepted := 0
	for ; accepted < 200; accepted++ {
		next, err := w.update(c, func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(accepted + 2) })
		if wait, limited := apierrors.SuggestsClientDelay(err); limited && wait > 0 && apierrors.IsTooManyRequests(err) {
			break
		}
		w.must(err)
		c = next
		c.Generation++
	}
	if first := audit.Pending(c)[0]; accepted >= 200 || first.Spec.Action != droverv1.Created {
		t.Errorf("%d changes were accepted, and the first record is %s", accepted, first.Spec.Action)
	}
	_, err := w.update(c, func(c *anywherev1.Cluster) { c.Finalizers = []string{anywherev1.ClusterFinalizer} })
	w.expect("a finalizer", "", err)
	w.expect("a deletion", "", w.delete(c))
	c.Status.AuditedSequence = 1
	_, err = w.update(c, func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	w.expect("a change after one was recorded", "", err)
}

// requests returns contexts of requests that concern a kind.
func (w *world) requests(kind string) func(user string, dry bool) context.Context {
	n := 0
	return func(user string, dry bool) context.Context {
		n++
		var request admission.Request
		request.UID, request.Kind.Kind, request.DryRun = types.UID(fmt.Sprintf("%s-%s-%d", w.ns, strings.ToLower(kind), n)), kind, ptr.To(dry)
		request.Operation, request.UserInfo = admissionv1.Update, authenticationv1.UserInfo{Username: user, Groups: []string{"system:masters"}}
		return admission.NewContextWithRequest(w.Context(), request)
	}
}

// change sends all changes of a config to its webhook: an edit, a pause, a label, a dry run, a
// deletion and a creation.
func change[T client.Object](w *world, kind string, rules configRules[T], was T, edit func(T)) {
	w.Helper()
	was.SetNamespace(w.ns)
	was.SetName("config")
	// Only paused configs of some kinds may change.
	was.SetAnnotations(map[string]string{anywherev1.ManagedByAnnotation: "mgmt", anywherev1.PausedAnnotation: "true"})
	copied := func(change func(T)) T {
		is := was.DeepCopyObject().(T)
		change(is)
		return is
	}
	edited, by := copied(edit), w.requests(kind)
	for _, step := range []struct {
		user string
		to   T
		dry  bool
	}{
		{"intruder", edited, false},
		{"resumer", copied(func(o T) { o.SetAnnotations(map[string]string{anywherev1.ManagedByAnnotation: "mgmt"}) }), false},
		{"labeler", copied(func(o T) { o.SetLabels(map[string]string{"a": "b"}) }), false},
		{"rehearser", edited, true},
	} {
		_, err := rules.ValidateUpdate(by(step.user, step.dry), was, step.to)
		w.must(err)
	}
	_, err := rules.ValidateDelete(by("deleter", false), was)
	w.must(err)
	was.SetAnnotations(nil)
	_, err = rules.ValidateCreate(by("replacer", false), was)
	w.must(err)
}

// TestChangesOfConfigsAreRecorded changes what a cluster consists of, and who may log in to it,
// without touching the cluster.
func TestChangesOfConfigsAreRecorded(t *testing.T) {
	w := newWorld(t)
	webhooks := newConfigWebhooks(w.clusterRules)
	github := anywherev1.Github{Owner: "team", Repository: "fleet"}
	kinds := map[string]struct {
		change           func(kind string)
		edited, replaced string
	}{
		anywherev1.DockerDatacenterConfigKind: {change: func(kind string) {
			change(w, kind, webhooks.docker, &anywherev1.DockerDatacenterConfig{}, func(*anywherev1.DockerDatacenterConfig) {})
		}},
		anywherev1.PacketDatacenterConfigKind: {func(kind string) {
			was := &anywherev1.PacketDatacenterConfig{Spec: anywherev1.PacketDatacenterConfigSpec{ProjectID: "p", Metro: "da"}}
			change(w, kind, webhooks.datacenter, was, func(o *anywherev1.PacketDatacenterConfig) { o.Spec.ProjectID = "other" })
		}, "spec.projectID", "spec.metro spec.projectID"},
		anywherev1.PacketMachineConfigKind: {func(kind string) {
			was := &anywherev1.PacketMachineConfig{Spec: anywherev1.PacketMachineConfigSpec{MachineType: "c3.small.x86", OS: "ubuntu_24_04"}}
			change(w, kind, webhooks.machine, was, func(o *anywherev1.PacketMachineConfig) { o.Spec.SSHKeys = []string{"ssh-ed25519 AAAA evil"} })
		}, "spec.sshKeys[0]", "spec.machineType spec.os"},
		anywherev1.FluxConfigKind: {func(kind string) {
			was := &anywherev1.FluxConfig{Spec: anywherev1.FluxConfigSpec{Github: &anywherev1.GithubProviderConfig{Owner: "team", Repository: "fleet"}}}
			change(w, kind, webhooks.flux, was, func(o *anywherev1.FluxConfig) { o.Spec.Github.Owner = "evil" })
		}, "spec.github.owner", "spec.github.owner spec.github.repository"},
		anywherev1.GitOpsConfigKind: {func(kind string) {
			was := &anywherev1.GitOpsConfig{Spec: anywherev1.GitOpsConfigSpec{Flux: anywherev1.Flux{Github: github}}}
			change(w, kind, webhooks.gitOps, was, func(o *anywherev1.GitOpsConfig) { o.Spec.Flux.Github.Owner = "evil" })
		}, "spec.flux.github.owner", "spec.flux.github.owner spec.flux.github.repository"},
		anywherev1.OIDCConfigKind: {func(kind string) {
			was := &anywherev1.OIDCConfig{Spec: anywherev1.OIDCConfigSpec{ClientID: "drover", IssuerURL: "https://sso.example.com"}}
			change(w, kind, webhooks.oidc, was, func(o *anywherev1.OIDCConfig) { o.Spec.IssuerURL = "https://evil.example.com" })
		}, "spec.issuerUrl", "spec.clientId spec.issuerUrl"},
	}
	if n := reflect.TypeFor[configWebhooks]().NumField(); n != len(kinds) {
		t.Errorf("%d kinds have webhooks, %d are tested", n, len(kinds))
	}
	for kind, tc := range kinds {
		name := strings.ToLower(kind)
		for cluster, config := range map[string]string{name: "config", "no-" + name: "another"} {
			c := w.workload(cluster)
			c.Spec.IdentityProviderRefs = []anywherev1.Ref{{Kind: kind, Name: config}}
			w.must(w.Create(t.Context(), c))
		}
		tc.change(kind)
		changed := func(user, paths string) string { return user + " Changed " + kind + "/config " + paths }
		want := []string{changed("deleter", "metadata.deletionTimestamp")}
		if tc.edited != "" {
			want = append(want, changed("intruder", tc.edited), changed("replacer", tc.replaced))
		}
		want = append(want, changed("resumer", "metadata.annotations[anywhere.eks.amazonaws.com/paused]"))
		if diff := cmp.Diff(want, w.recorded(name)); diff != "" {
			t.Errorf("%s: records (-want +got):\n%s", kind, diff)
		}
		if got := w.recorded("no-" + name); len(got) > 0 {
			t.Errorf("%s: records of another cluster: %v", kind, got)
		}
	}
}
