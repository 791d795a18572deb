package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestChangesOfConfigsAreRecorded changes who may log in to a cluster without touching the cluster.
func TestChangesOfConfigsAreRecorded(t *testing.T) {
	w := newWorld(t)
	for name, config := range map[string]string{"user": "sso", "bystander": "other"} {
		c := w.workload(name)
		c.Spec.IdentityProviderRefs = []anywherev1.Ref{{Kind: anywherev1.OIDCConfigKind, Name: config}}
		w.must(w.Create(t.Context(), c))
	}
	rules := configRules[*anywherev1.OIDCConfig]{
		users: w.users, spec: func(o *anywherev1.OIDCConfig) any { return o.Spec }, fixed: ofManagement,
		changes: &configChanges{reader: w.Client, moves: w.moves, records: w.records, now: time.Now},
	}
	n := 0
	by := func(user string, dry bool) (request admission.Request) {
		n++
		request.UID, request.Kind.Kind, request.DryRun = types.UID(fmt.Sprintf("%s-%d", w.ns, n)), anywherev1.OIDCConfigKind, ptr.To(dry)
		request.Operation, request.UserInfo = admissionv1.Update, authenticationv1.UserInfo{Username: user}
		return request
	}
	was := &anywherev1.OIDCConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "sso", Annotations: map[string]string{anywherev1.ManagedByAnnotation: "mgmt"}},
		Spec:       anywherev1.OIDCConfigSpec{ClientID: "drover", IssuerURL: "https://sso.example.com"},
	}
	is, paused, same := was.DeepCopy(), was.DeepCopy(), was.DeepCopy()
	is.Spec.IssuerURL = "https://evil.example.com"
	paused.Annotations[anywherev1.PausedAnnotation] = "true"
	same.Labels = map[string]string{"a": "b"}
	for _, step := range []struct {
		to   *anywherev1.OIDCConfig
		user string
		dry  bool
	}{{is, "intruder", false}, {paused, "pauser", false}, {same, "labeler", false}, {is, "rehearser", true}} {
		_, err := rules.ValidateUpdate(admission.NewContextWithRequest(t.Context(), by(step.user, step.dry)), was, step.to)
		w.must(err)
	}
	_, err := rules.ValidateDelete(admission.NewContextWithRequest(t.Context(), by("deleter", false)), was)
	w.must(err)
	_, err = rules.ValidateCreate(admission.NewContextWithRequest(t.Context(), by("replacer", false)), was)
	w.must(err)
	want := []string{
		"deleter Changed OIDCConfig/sso metadata.deletionTimestamp",
		"intruder Changed OIDCConfig/sso spec.issuerUrl",
		"pauser Changed OIDCConfig/sso metadata.annotations[anywhere.eks.amazonaws.com/paused]",
		"replacer Changed OIDCConfig/sso spec.clientId spec.issuerUrl",
	}
	if diff := cmp.Diff(want, w.recorded("user")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got := w.recorded("bystander"); len(got) > 0 {
		t.Errorf("records of another cluster: %v", got)
	}
}
