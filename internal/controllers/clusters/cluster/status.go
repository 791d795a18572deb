package cluster

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
)

// facts are what a status is made of.
type facts struct {
	cluster      *anywherev1.Cluster
	controlPlane *controlplanev1.KubeadmControlPlane
	workers      []*clusterv1.MachineDeployment
	sets         []*clusterv1.MachineSet
	machines     []*clusterv1.Machine
	network      *addonsv1.HelmChartProxy
	release      *addonsv1.HelmReleaseProxy
	// networkOurs says that the network is not left to the user.
	networkOurs bool
	// held are groups that wait for the control plane.
	held []string
	// children is the sum of the generations of what the Cluster names.
	children int64
	failure  *failure
	// deleting says that the Cluster goes, and waiting for what it waits.
	deleting bool
	waiting  string
	now      time.Time
}

func (s *scope) facts(now time.Time) facts {
	f := facts{
		cluster: s.cluster, controlPlane: s.live.controlPlane, workers: s.live.workers, sets: s.live.sets, machines: s.live.machines,
		network: s.live.network, release: s.live.release,
		networkOurs: s.live.network != nil && !s.cluster.IsSkipUpgrade(),
		failure:     s.failure, deleting: s.deleting(), waiting: s.waiting, now: now,
	}
	if s.wanted != nil {
		f.held = s.wanted.Held
		f.networkOurs = s.wanted.Network != nil
	}
	if s.config != nil {
		for _, o := range s.config.Objects() {
			if o.GetUID() != s.cluster.UID {
				f.children += o.GetGeneration()
			}
		}
	}
	return f
}

// verdict is a condition before it has a type.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func yes(reason string) verdict { return verdict{metav1.ConditionTrue, reason, ""} }

func no(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// status is what a Cluster says of itself.
func status(f facts) anywherev1.ClusterStatus {
	out := *f.cluster.Status.DeepCopy()
	out.ObservedGeneration = f.cluster.Generation
	out.FailureReason, out.FailureMessage = nil, nil
	if f.failure != nil {
		out.FailureReason, out.FailureMessage = ptr.To(f.failure.reason), ptr.To(limit(f.failure.message))
	}
	out.Version, out.ControlPlane, out.Workers = versionOf(f), controlPlaneCount(f), workersCount(f)
	out.ClusterCertificateInfo = certificates(f)
	verdicts := []struct {
		kind string
		verdict
	}{
		{anywherev1.ControlPlaneInitialized, initialized(f)},
		{anywherev1.ControlPlaneReady, controlPlaneReady(f)},
		{anywherev1.DefaultCNIConfigured, networkConfigured(f)},
		{anywherev1.WorkersReady, workersReady(f)},
	}
	ready := yes(anywherev1.ReadyReason)
	for _, v := range verdicts {
		set(&out, f, v.kind, v.verdict)
		if ready.status == metav1.ConditionTrue && v.status != metav1.ConditionTrue && v.reason != anywherev1.SkipUpgradesForDefaultCNIConfiguredReason {
			ready = v.verdict
		}
	}
	set(&out, f, anywherev1.Ready, overall(f, ready))
	if meta.IsStatusConditionTrue(out.Conditions, anywherev1.Ready) {
		out.ReconciledGeneration, out.ChildrenReconciledGeneration = f.cluster.Generation, f.children
	}
	return out
}

// overall is the summary, unless something concerns the Cluster as a whole.
func overall(f facts, ready verdict) verdict {
	switch {
	case f.deleting:
		return no(anywherev1.DeletingReason, "%s", orElse(f.waiting, "The cluster is being removed"))
	case f.failure != nil:
		return no(anywherev1.FailedReason, "%s", limit(f.failure.message))
	default:
		return ready
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// longest is how long a message may be.
const longest = 2048

func limit(message string) string {
	if len(message) <= longest {
		return message
	}
	return message[:longest-1] + "…"
}

func set(to *anywherev1.ClusterStatus, f facts, kind string, v verdict) {
	meta.SetStatusCondition(&to.Conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: f.cluster.Generation, LastTransitionTime: metav1.NewTime(f.now),
	})
}

// initialized never goes back.
func initialized(f facts) verdict {
	was := meta.IsStatusConditionTrue(f.cluster.Status.Conditions, anywherev1.ControlPlaneInitialized)
	if was || f.controlPlane != nil && ptr.Deref(f.controlPlane.Status.Initialization.ControlPlaneInitialized, false) {
		return yes(anywherev1.InitializedReason)
	}
	return no(anywherev1.ControlPlaneInitializationInProgressReason, "%s", anywherev1.FirstControlPlaneUnavailableMessage)
}

// controlPlaneReady asks in the order in which things come right.
func controlPlaneReady(f facts) verdict {
	k := f.controlPlane
	if k == nil || initialized(f).status != metav1.ConditionTrue {
		return no(anywherev1.ControlPlaneInitializationInProgressReason, "%s", anywherev1.FirstControlPlaneUnavailableMessage)
	}
	if k.Status.ObservedGeneration != k.Generation {
		return no(anywherev1.OutdatedInformationReason, anywherev1.KubeadmControlPlaneNotReadyMessage, k.Name)
	}
	wanted := ptr.Deref(k.Spec.Replicas, 1)
	actual, current, ready := ptr.Deref(k.Status.Replicas, 0), ptr.Deref(k.Status.UpToDateReplicas, 0), ptr.Deref(k.Status.ReadyReplicas, 0)
	switch {
	case current < actual:
		return no(anywherev1.RollingUpgradeInProgressReason, anywherev1.ControlPlaneOutdatedMessage, actual-current, current)
	case actual < wanted:
		return no(anywherev1.ScalingUpReason, anywherev1.ControlPlaneScalingUpMessage, wanted, actual)
	case actual > wanted:
		return no(anywherev1.ScalingDownReason, anywherev1.ControlPlaneScalingDownMessage, wanted, actual)
	case unhealthy(k) != nil:
		return no(anywherev1.ControlPlaneComponentsUnhealthyReason, "%s", limit(unhealthy(k).Message))
	case ready != wanted:
		return no(anywherev1.NodesNotReadyReason, anywherev1.ControlPlaneNodesNotReadyMessage, wanted, ready)
	case !meta.IsStatusConditionTrue(k.Status.Conditions, controlplanev1.KubeadmControlPlaneAvailableCondition):
		return no(anywherev1.KubeadmControlPlaneNotReadyReason, anywherev1.KubeadmControlPlaneNotReadyMessage, k.Name)
	}
	return yes(anywherev1.ReadyReason)
}

// unhealthy is what a control plane says of a part that does not work.
func unhealthy(k *controlplanev1.KubeadmControlPlane) *metav1.Condition {
	for _, kind := range []string{
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition,
	} {
		if c := meta.FindStatusCondition(k.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return c
		}
	}
	return nil
}

// networkConfigured follows the release on the cluster.
func networkConfigured(f facts) verdict {
	switch {
	case !f.networkOurs:
		return no(anywherev1.SkipUpgradesForDefaultCNIConfiguredReason, "The network is left to the users of the cluster")
	case initialized(f).status != metav1.ConditionTrue:
		return no(anywherev1.ControlPlaneNotInitializedReason, "%s", anywherev1.FirstControlPlaneUnavailableMessage)
	case f.release == nil:
		return no(anywherev1.DefaultCNIUpgradeInProgressReason, "The network has not been installed yet")
	}
	ready := meta.FindStatusCondition(f.release.Status.Conditions, clusterv1.ReadyCondition)
	old := f.release.Status.ObservedGeneration != f.release.Generation || f.network != nil && f.release.Spec.Version != f.network.Spec.Version
	if old || ready == nil || ready.Status != metav1.ConditionTrue {
		message := ""
		if ready != nil {
			message = ready.Message
		}
		return no(anywherev1.DefaultCNIUpgradeInProgressReason, "%s", orElse(limit(message), fmt.Sprintf("HelmReleaseProxy %q is being carried out", f.release.Name)))
	}
	return yes(anywherev1.ConfiguredReason)
}

// certificates says when those of the control planes end, in whole days.
func certificates(f facts) []anywherev1.ClusterCertificateInfo {
	var out []anywherev1.ClusterCertificateInfo
	for _, m := range f.machines {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; !ok || m.Status.CertificatesExpiryDate.IsZero() {
			continue
		}
		left := m.Status.CertificatesExpiryDate.Sub(f.now)
		out = append(out, anywherev1.ClusterCertificateInfo{Machine: m.Name, ExpiresInDays: int(math.Floor(left.Hours() / day.Hours()))})
	}
	return out
}

func versionOf(f facts) string {
	if f.controlPlane == nil {
		return ""
	}
	return f.controlPlane.Status.Version
}

func controlPlaneCount(f facts) string {
	ready := int32(0)
	if f.controlPlane != nil {
		ready = ptr.Deref(f.controlPlane.Status.ReadyReplicas, 0)
	}
	return fmt.Sprintf("%d/%d", ready, f.cluster.Spec.ControlPlaneConfiguration.Count)
}

// groupOf is the group of the spec that a MachineDeployment is for; nil if it left the spec.
func groupOf(c *anywherev1.Cluster, d *clusterv1.MachineDeployment) *anywherev1.WorkerNodeGroupConfiguration {
	for i := range c.Spec.WorkerNodeGroupConfigurations {
		if g := &c.Spec.WorkerNodeGroupConfigurations[i]; build.WorkersName(c.Name, g.Name) == d.Name {
			return g
		}
	}
	return nil
}
