package admission

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
)

const (
	fluxUser  = "system:serviceaccount:team-a:drover-gitops"
	inUse     = "is in use, but its files were removed from Git: run `drover gitops confirm"
	dockerCfg = "DockerDatacenterConfig"
)

// deletes returns the context of a deletion.
func (w *world) deletes(kind, user string) context.Context {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, UID: "u", UserInfo: authenticationv1.UserInfo{Username: user},
	}}
	request.Kind.Kind = kind
	return admission.NewContextWithRequest(w.Context(), request)
}

// used makes a Cluster one that is ready.
func used(c *anywherev1.Cluster) *anywherev1.Cluster {
	c.Status.Conditions = []metav1.Condition{{
		Type: anywherev1.Ready, Status: metav1.ConditionTrue, Reason: anywherev1.ReadyReason, LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
	}}
	return c
}

func TestFluxDeletesClustersInUseOnlyIfConfirmed(t *testing.T) {
	w := newWorld(t)
	confirmed := used(w.workload("confirmed"))
	confirmed.Annotations = map[string]string{anywherev1.GitRemovalAnnotation: "confirmed"}
	for name, tt := range map[string]struct {
		user, want string
		cluster    *anywherev1.Cluster
	}{
		"Flux, a ready cluster":                {fluxUser, inUse, used(w.workload("ready"))},
		"another Flux, a ready cluster":        {"system:serviceaccount:flux-system:kustomize-controller", inUse, used(w.workload("other"))},
		"Flux, a cluster that was never ready": {fluxUser, "", w.workload("new")},
		"Flux, a confirmed removal":            {fluxUser, "", confirmed},
		"a person, a ready cluster":            {"developer", "", used(w.workload("person"))},
	} {
		tt.cluster.UID = types.UID(tt.cluster.Name)
		_, err := w.ValidateDelete(w.deletes(anywherev1.ClusterKind, tt.user), tt.cluster)
		w.expect(name, tt.want, err)
	}
}

func TestFluxKeepsConfigsOfClustersInUse(t *testing.T) {
	w := newWorld(t)
	c := w.workload("in-use")
	w.must(w.Create(w.Context(), c))
	used(c)
	w.must(w.Status().Update(w.Context(), c))
	rules := newConfigWebhooks(w.clusterRules).docker
	config := &anywherev1.DockerDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: c.Spec.DatacenterRef.Name}}
	_, err := rules.ValidateDelete(w.deletes(dockerCfg, fluxUser), config)
	w.expect("a referenced config", inUse, err)
	unused := &anywherev1.DockerDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "unused"}}
	_, err = rules.ValidateDelete(w.deletes(dockerCfg, fluxUser), unused)
	w.expect("a config that no cluster references", "", err)
	_, err = rules.ValidateDelete(w.deletes(dockerCfg, "developer"), config)
	w.expect("a referenced config, by a person", "", err)
}

func TestClusterFromGitBelongsToWhoRequestedIt(t *testing.T) {
	w := newWorld(t)
	request := func(name, cluster, user string, action droverv1.GitAction, committed metav1.ConditionStatus) {
		t.Helper()
		change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: droverv1.GitChangeSpec{
			Cluster: cluster, Action: action, FluxConfig: "fleet", RequestedBy: user,
		}}
		w.must(w.Create(t.Context(), change))
		change.Status.Conditions = []metav1.Condition{{
			Type: droverv1.GitCommitted, Status: committed, Reason: droverv1.GitCommittedReason, LastTransitionTime: metav1.Now(),
		}}
		w.must(w.Status().Update(t.Context(), change))
	}
	request("written", "requested", "developer", droverv1.GitWrite, metav1.ConditionTrue)
	request("pending", "waiting", "developer", droverv1.GitWrite, metav1.ConditionFalse)
	request("removed", "gone", "developer", droverv1.GitRemove, metav1.ConditionTrue)
	flux := "system:serviceaccount:" + w.ns + ":" + anywherev1.GitAccount
	for name, tt := range map[string]struct{ cluster, by, want string }{
		"requested by a user":                {"requested", flux, "developer"},
		"committed by hand":                  {"other", flux, flux},
		"requested, but not committed":       {"waiting", flux, flux},
		"whose removal was requested":        {"gone", flux, flux},
		"created directly, while one waits":  {"requested", "somebody", "somebody"},
		"applied by Flux of another tenant":  {"requested", "system:serviceaccount:other:" + anywherev1.GitAccount, "system:serviceaccount:other:" + anywherev1.GitAccount},
		"applied by another account of Flux": {"requested", flux + "-2", flux + "-2"},
	} {
		c := w.workload(tt.cluster)
		w.must(w.sign(t.Context(), nil, c, authenticationv1.UserInfo{Username: tt.by}))
		if got := c.Annotations[cluster.CreatedByAnnotation]; got != tt.want {
			t.Errorf("a cluster %s belongs to %q, want %q", name, got, tt.want)
		}
	}
}

// TestManagementClustersChangeByCommit scales and upgrades management clusters on local machines
// with the account of Flux that only administrators can use.
func TestManagementClustersChangeByCommit(t *testing.T) {
	w := newWorld(t)
	w.localSecret("")
	w.ns = "default"
	for name, tt := range map[string]struct {
		user, want string
		management bool
	}{
		"the management cluster":                       {"system:serviceaccount:flux-system:drover-gitops", "", true},
		"a workload cluster":                           {"system:serviceaccount:flux-system:drover-gitops", "by administrators only", false},
		"the management cluster, in a tenant's name":   {"system:serviceaccount:default:drover-gitops", "by administrators only", true},
		"the management cluster, by somebody's commit": {fluxUser, "by administrators only", true},
	} {
		was := w.workload("local")
		if tt.management {
			was.Spec.Management, was.Spec.ManagementCluster.Name = nil, was.Name
		}
		is := was.DeepCopy()
		is.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(2)
		_, err := w.ValidateUpdate(w.as(authenticationv1.UserInfo{Username: tt.user}), was, is)
		w.expect(name, tt.want, err)
	}
}
