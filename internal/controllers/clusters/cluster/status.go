package cluster

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/inplace"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// facts are the inputs of the status.
type facts struct {
	cluster      *anywherev1.Cluster
	controlPlane *controlplanev1.KubeadmControlPlane
	// etcd is external etcd; nil if it does not exist yet, or the cluster has none.
	etcd     *etcdv1.EtcdadmCluster
	workers  []*clusterv1.MachineDeployment
	sets     []*clusterv1.MachineSet
	machines []*clusterv1.Machine
	network  *addonsv1.HelmChartProxy
	release  *addonsv1.HelmReleaseProxy
	// networkOurs means that Drover manages the Pod network.
	networkOurs bool
	// encryption is how API servers encrypt Secrets; nil without a key of the cluster.
	encryption *encryption.State
	// encryptionProblem is why Secrets can't be encrypted with a new key, or "".
	encryptionProblem string
	// held are the groups that wait for the control plane.
	held []string
	// upgrade is the progress of a Kubernetes upgrade; nil if nothing is known in this reconcile.
	upgrade *lockstep.Decision
	// packages is nil if nothing is known about packages in this reconcile.
	packages *packagesState
	// children is the sum of the generations of the objects that the Cluster references.
	children int64
	failure  *failure
	// reservation is why a new Cluster waits for machines, or nil.
	reservation *verdict
	// deleting means that the Cluster is being deleted, and waiting says what the deletion waits
	// for.
	deleting bool
	waiting  string
	// drover is the version of this Drover.
	drover string
	now    time.Time
}

func (s *scope) facts(outcome error, now time.Time) facts {
	f := facts{
		cluster: s.cluster, controlPlane: s.live.controlPlane, etcd: s.live.etcd, workers: s.live.workers, sets: s.live.sets, machines: s.live.machines,
		network: s.live.network, release: s.live.release, encryption: s.encryption, encryptionProblem: s.encryptionProblem,
		networkOurs: s.live.network != nil && !s.cluster.IsSkipUpgrade(),
		failure:     failureOf(outcome), deleting: s.visit.Deleting(), now: now, packages: s.packages, upgrade: s.upgrade, drover: version.Get().Version,
	}
	if wait := reconcile.AsWait(outcome); wait != nil {
		f.waiting = wait.Message
		if !f.deleting {
			f.reservation = ptr.To(no(wait.Reason, "%s", wait.Message))
		}
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

// verdict is a condition without a type.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func yes(reason string) verdict { return verdict{metav1.ConditionTrue, reason, ""} }

func no(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// kindVerdict is a condition.
type kindVerdict struct {
	kind string
	verdict
}

// status returns the status of a Cluster. All conditions are set here.
func status(f facts) anywherev1.ClusterStatus {
	out := *f.cluster.Status.DeepCopy()
	out.ObservedGeneration = f.cluster.Generation
	out.FailureReason, out.FailureMessage = nil, nil
	if f.failure != nil {
		out.FailureReason, out.FailureMessage = ptr.To(f.failure.reason), ptr.To(text.Truncate(f.failure.message))
	}
	out.Version, out.ControlPlane, out.Workers = versionOf(f), controlPlaneCount(f), workersCount(f)
	out.ClusterCertificateInfo, out.CertificatesRenewed = certificates(f), renewed(f)
	var verdicts []kindVerdict
	if f.hasExternalEtcd() {
		verdicts = append(verdicts, kindVerdict{anywherev1.EtcdReady, etcdReady(f)})
	}
	verdicts = append(verdicts, []kindVerdict{
		{anywherev1.ControlPlaneInitialized, initialized(f)},
		{anywherev1.ControlPlaneReady, controlPlaneReady(f)},
		{anywherev1.DefaultCNIConfigured, networkConfigured(f)},
		{anywherev1.WorkersReady, workersReady(f)},
	}...)
	if f.encryption != nil {
		verdicts = append(verdicts, kindVerdict{anywherev1.SecretsEncrypted, secretsEncrypted(f)})
	}
	if f.upgrade != nil && f.upgrade.Upgrade != nil {
		verdicts = append(verdicts, kindVerdict{anywherev1.KubernetesUpgraded, upgraded(f)})
	}
	ready := yes(anywherev1.ReadyReason)
	for _, v := range verdicts {
		set(&out, f, v.kind, v.verdict)
		if ready.status == metav1.ConditionTrue && v.status != metav1.ConditionTrue && v.reason != anywherev1.SkipUpgradesForDefaultCNIConfiguredReason {
			ready = v.verdict
		}
	}
	setUpgraded(&out, f)
	setReservation(&out, f)
	setRenewal(&out, f)
	setPackages(&out, f)
	setDrover(&out, f)
	set(&out, f, anywherev1.Ready, overall(f, ready))
	if meta.IsStatusConditionTrue(out.Conditions, anywherev1.Ready) {
		out.ReconciledGeneration, out.ChildrenReconciledGeneration = f.cluster.Generation, f.children
	}
	return out
}

// overall returns the summary, unless the Cluster is being deleted or has failed.
func overall(f facts, ready verdict) verdict {
	switch {
	case f.deleting:
		return no(anywherev1.DeletingReason, "%s", cmp.Or(f.waiting, "The cluster is being deleted"))
	case f.failure != nil:
		return no(anywherev1.FailedReason, "%s", text.Truncate(f.failure.message))
	case f.reservation != nil:
		return *f.reservation
	default:
		return ready
	}
}

func set(to *anywherev1.ClusterStatus, f facts, kind string, v verdict) {
	meta.SetStatusCondition(&to.Conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: f.cluster.Generation, LastTransitionTime: metav1.NewTime(f.now),
	})
}

// setReservation reports that a new Cluster waits for machines.
func setReservation(to *anywherev1.ClusterStatus, f facts) {
	if f.reservation == nil {
		meta.RemoveStatusCondition(&to.Conditions, anywherev1.CapacityReserved)
		return
	}
	set(to, f, anywherev1.CapacityReserved, *f.reservation)
}

// setPackages reports why packages can't be used. A cluster without packages is ready.
func setPackages(to *anywherev1.ClusterStatus, f facts) {
	switch {
	case f.packages == nil:
	case f.packages.problem == nil:
		meta.RemoveStatusCondition(&to.Conditions, anywherev1.PackagesEnabled)
	default:
		set(to, f, anywherev1.PackagesEnabled, *f.packages.problem)
	}
}

// setDrover reports whether a management cluster runs the version of Drover that its spec names.
// The manager can't upgrade itself, so a cluster is ready without it.
func setDrover(to *anywherev1.ClusterStatus, f facts) {
	wanted := f.cluster.Spec.DroverVersion
	switch {
	case wanted == "" || !f.cluster.IsSelfManaged():
		meta.RemoveStatusCondition(&to.Conditions, anywherev1.DroverUpToDate)
	case wanted == f.drover:
		set(to, f, anywherev1.DroverUpToDate, yes(anywherev1.UpToDateReason))
	default:
		set(to, f, anywherev1.DroverUpToDate, no(anywherev1.DroverUpgradeRequiredReason,
			"Drover %s is installed: run `drover upgrade cluster -f FILE` of Drover %s with the spec of the cluster", f.drover, wanted))
	}
}

// initialized reports whether an API server has been available. It never becomes False again.
func initialized(f facts) verdict {
	was := meta.IsStatusConditionTrue(f.cluster.Status.Conditions, anywherev1.ControlPlaneInitialized)
	if was || f.controlPlane != nil && ptr.Deref(f.controlPlane.Status.Initialization.ControlPlaneInitialized, false) {
		return yes(anywherev1.InitializedReason)
	}
	if waiting := etcdWait(f); waiting != nil {
		return *waiting
	}
	return no(anywherev1.ControlPlaneInitializationInProgressReason, "%s", anywherev1.FirstControlPlaneUnavailableMessage)
}

// controlPlaneReady checks in the order in which problems resolve.
func controlPlaneReady(f facts) verdict {
	if waiting := etcdWait(f); waiting != nil {
		return *waiting
	}
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
	case current < actual && inplace.Wanted(k.Spec.MachineTemplate.ObjectMeta.Annotations):
		return upgradingInPlace(f, fmt.Sprintf(anywherev1.ControlPlaneOutdatedMessage, actual-current, current), isControlPlane)
	case current < actual:
		return no(anywherev1.RollingUpgradeInProgressReason, anywherev1.ControlPlaneOutdatedMessage, actual-current, current)
	case actual < wanted:
		return no(anywherev1.ScalingUpReason, anywherev1.ControlPlaneScalingUpMessage, wanted, actual)
	case actual > wanted:
		return no(anywherev1.ScalingDownReason, anywherev1.ControlPlaneScalingDownMessage, wanted, actual)
	case unhealthy(k) != nil:
		return no(anywherev1.ControlPlaneComponentsUnhealthyReason, "%s", text.Truncate(unhealthy(k).Message))
	case ready != wanted:
		return no(anywherev1.NodesNotReadyReason, anywherev1.ControlPlaneNodesNotReadyMessage, wanted, ready)
	case !meta.IsStatusConditionTrue(k.Status.Conditions, controlplanev1.KubeadmControlPlaneAvailableCondition):
		return no(anywherev1.KubeadmControlPlaneNotReadyReason, anywherev1.KubeadmControlPlaneNotReadyMessage, k.Name)
	}
	return yes(anywherev1.ReadyReason)
}

// upgradingInPlace names the machine that is being upgraded and its step.
func upgradingInPlace(f facts, message string, of func(*clusterv1.Machine) bool) verdict {
	for _, m := range f.machines {
		if step := updating(m); step != "" && of(m) {
			return no(anywherev1.InPlaceUpgradeInProgressReason, "%s", text.Truncate(fmt.Sprintf("%s: upgrading %s in place %s", message, m.Name, step)))
		}
	}
	return no(anywherev1.InPlaceUpgradeInProgressReason, "%s", message)
}

// updating returns the step of a machine that is being upgraded in place, or "". Others that wait
// for it have none.
func updating(m *clusterv1.Machine) string {
	c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineUpdatingCondition)
	if c == nil || c.Status != metav1.ConditionTrue || strings.Contains(c.Message, inplace.WaitingForMachine) {
		return ""
	}
	_, step, upgrading := strings.Cut(c.Message, inplace.StepPrefix)
	if !upgrading {
		return ""
	}
	return "to " + step
}

// isUpdating reports whether a machine is being changed in place, or about to be.
func isUpdating(m *clusterv1.Machine) bool {
	_, is := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	return is
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, is := m.Labels[clusterv1.MachineControlPlaneLabel]
	return is
}

// unhealthy returns the condition of a control plane component that does not work, or nil.
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

// networkConfigured follows the release of the Pod network.
func networkConfigured(f facts) verdict {
	switch {
	case !f.networkOurs:
		return no(anywherev1.SkipUpgradesForDefaultCNIConfiguredReason, "Drover does not manage the Pod network of this cluster")
	case initialized(f).status != metav1.ConditionTrue:
		return no(anywherev1.ControlPlaneNotInitializedReason, "%s", anywherev1.FirstControlPlaneUnavailableMessage)
	case f.release == nil:
		return no(anywherev1.DefaultCNIUpgradeInProgressReason, "The Pod network is not installed yet")
	}
	ready := meta.FindStatusCondition(f.release.Status.Conditions, clusterv1.ReadyCondition)
	old := f.release.Status.ObservedGeneration != f.release.Generation || f.network != nil && f.release.Spec.Version != f.network.Spec.Version
	if old || ready == nil || ready.Status != metav1.ConditionTrue {
		message := ""
		if ready != nil {
			message = ready.Message
		}
		return no(anywherev1.DefaultCNIUpgradeInProgressReason, "%s", cmp.Or(text.Truncate(message), fmt.Sprintf("HelmReleaseProxy %q is not ready yet", f.release.Name)))
	}
	return yes(anywherev1.ConfiguredReason)
}

// secretsEncrypted follows a change of keys, which replaces control plane machines twice.
func secretsEncrypted(f facts) verdict {
	switch f.encryption.Stage {
	case encryption.Adding:
		return no(anywherev1.EncryptionKeyChangingReason, "Control plane machines are replaced to accept the new encryption key, step 1 of 3")
	case encryption.Switching:
		return no(anywherev1.EncryptionKeyChangingReason, "Control plane machines are replaced to use the new encryption key, step 2 of 3")
	case encryption.Rewriting:
		if f.encryptionProblem != "" {
			return no(anywherev1.EncryptionKeyChangingReason, "%s", text.Truncate("Secrets can't be encrypted with the new key, step 3 of 3: "+f.encryptionProblem))
		}
		return no(anywherev1.EncryptionKeyChangingReason, "Secrets are encrypted with the new key, step 3 of 3")
	default:
		return yes(anywherev1.EncryptedReason)
	}
}

// certificates returns the days until the certificates of control plane machines expire.
func certificates(f facts) []anywherev1.ClusterCertificateInfo {
	var out []anywherev1.ClusterCertificateInfo
	for _, m := range f.controlPlaneMachines() {
		if m.Status.CertificatesExpiryDate.IsZero() {
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

// groupOf returns the group of a MachineDeployment, or nil if the spec no longer contains it.
func groupOf(c *anywherev1.Cluster, d *clusterv1.MachineDeployment) *anywherev1.WorkerNodeGroupConfiguration {
	for i := range c.Spec.WorkerNodeGroupConfigurations {
		if g := &c.Spec.WorkerNodeGroupConfigurations[i]; build.WorkersName(c.Name, g.Name) == d.Name {
			return g
		}
	}
	return nil
}
