package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/etcd/boot"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
)

// maxNamed is how many members a message names.
const maxNamed = 3

// report computes the status from the facts.
func (s *scope) report() {
	e := s.etcd
	e.Status.ObservedGeneration = e.Generation
	e.Status.Selector = etcdv1.MemberLabel + "=" + e.Name
	e.Status.Initialized = s.initialized()
	s.hasFormed = s.initialized()
	for _, c := range s.conditions() {
		conditions.Set(e, c)
	}
	summarize(e)
	if s.world == nil {
		return
	}
	s.reportMembers()
	healthy := s.action.Kind == plan.Done || settled(*s.world)
	e.Status.Ready = healthy
	e.Status.CreationComplete = e.Status.CreationComplete || healthy
	s.reportEndpoints()
	setUpgrading(e, *s.world)
	s.reportRenewals()
}

// settled reports whether all slots have a healthy member, whatever is being replaced.
func settled(w plan.World) bool {
	if !w.Quorum || len(w.Members) < w.Replicas {
		return false
	}
	return !slices.ContainsFunc(w.Members, func(m plan.Member) bool { return !m.Learner && !m.Healthy })
}

// reportEndpoints publishes the endpoints once etcd is complete. More of them are added when their
// members are healthy; fewer are taken away at once.
func (s *scope) reportEndpoints() {
	e := s.etcd
	e.Status.InitMachineAddress = s.endpoints[0]
	if !e.Status.CreationComplete || len(s.endpoints) > s.known() && !settled(*s.world) {
		return
	}
	var urls []string
	for _, address := range s.endpoints {
		urls = append(urls, boot.ClientURL(address))
	}
	e.Status.Endpoints = strings.Join(urls, ",")
}

func (s *scope) reportMembers() {
	s.etcd.Status.ReadyReplicas, s.etcd.Status.Members = 0, nil
	for _, m := range s.world.Members {
		if m.Healthy && !m.Learner {
			s.etcd.Status.ReadyReplicas++
		}
		status := etcdv1.MemberStatus{Name: memberName(m), Role: role(m), Healthy: m.Healthy}
		if ip := s.addresses[m.At]; ip != nil {
			status.Address = ip.Address
		}
		s.etcd.Status.Members = append(s.etcd.Status.Members, status)
	}
	slices.SortFunc(s.etcd.Status.Members, func(a, b etcdv1.MemberStatus) int { return compare(a.Name, b.Name) })
}

func memberName(m plan.Member) string {
	if m.Name != "" {
		return m.Name
	}
	return strconv.FormatUint(m.ID, 16)
}

func role(m plan.Member) string {
	switch {
	case m.Learner:
		return "learner"
	case m.Leader:
		return "leader"
	default:
		return "follower"
	}
}

// setUpgrading marks an etcd whose members are replaced because the spec has changed.
func setUpgrading(e *etcdv1.EtcdadmCluster, w plan.World) {
	if !slices.ContainsFunc(w.Machines, func(m plan.Machine) bool { return m.Outdated && !m.Deleting }) {
		delete(e.Annotations, etcdv1.UpgradingAnnotation)
		return
	}
	e.Annotations[etcdv1.UpgradingAnnotation] = "true"
}

func summarize(e *etcdv1.EtcdadmCluster) {
	all := conditions.ForConditionTypes{
		etcdv1.EtcdEndpointsAvailable, etcdv1.EtcdCertificatesAvailable, etcdv1.Initialized, etcdv1.EtcdClusterHealthy,
		etcdv1.EtcdClusterResizeCompleted, etcdv1.EtcdMachinesSpecUpToDate,
	}
	if err := conditions.SetSummaryCondition(e, e, clusterv1.ReadyCondition, all, conditions.IgnoreTypesIfMissing(all)); err != nil {
		conditions.Set(e, metav1.Condition{
			Type: clusterv1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: clusterv1.InternalErrorReason, Message: err.Error(),
		})
	}
}

// conditions returns the conditions that are known.
func (f facts) conditions() []metav1.Condition {
	out := []metav1.Condition{f.available(etcdv1.EtcdEndpointsAvailable, f.endpoints != nil)}
	if f.endpoints == nil {
		return out
	}
	out = append(out, f.available(etcdv1.EtcdCertificatesAvailable, f.certificates))
	if f.world == nil {
		if f.wait != nil {
			out = append(out, no(etcdv1.EtcdMachinesSpecUpToDate, f.wait.Reason, f.wait.Message))
		}
		return out
	}
	return append(out, f.formed(), f.health(), f.size(), f.upToDate(), f.machinesReady(), f.withoutOutdated())
}

func (f facts) available(kind string, ok bool) metav1.Condition {
	switch {
	case ok:
		return yes(kind, etcdv1.AvailableReason)
	case f.wait != nil:
		return no(kind, f.wait.Reason, f.wait.Message)
	default:
		return no(kind, etcdv1.WaitingForInfrastructureReason, "Waiting for the cluster's infrastructure")
	}
}

func (f facts) formed() metav1.Condition {
	if f.hasFormed {
		return yes(etcdv1.Initialized, etcdv1.Initialized)
	}
	if f.wait != nil {
		return no(etcdv1.Initialized, f.wait.Reason, f.wait.Message)
	}
	return no(etcdv1.Initialized, etcdv1.WaitingForMembersReason, fmt.Sprintf("Waiting for %d etcd machines to start", f.world.Replicas))
}

// health reports quorum first: without it, nothing else matters.
func (f facts) health() metav1.Condition {
	const kind = etcdv1.EtcdClusterHealthy
	w := f.world
	var down []string
	for _, m := range w.Members {
		if !m.Healthy && !m.Learner {
			down = append(down, memberName(m))
		}
	}
	switch {
	case !w.Initialized:
		return no(kind, etcdv1.WaitingForMembersReason, "Waiting for etcd to form")
	case !w.Quorum:
		return no(kind, etcdv1.QuorumLostReason, "Etcd does not answer, so nothing is removed: power on its machines (drover machine list), "+
			fmt.Sprintf("or restore a snapshot if their disks are lost (drover etcd restore %s --from LOCATION)", f.clusterName))
	case f.action.Reason == plan.Foreign:
		return no(kind, etcdv1.MemberUnhealthyReason, fmt.Sprintf("Member %x is on no machine of this cluster: remove it with etcdctl", f.action.Member))
	case len(down) > 0:
		return no(kind, etcdv1.MemberUnhealthyReason, fmt.Sprintf("Members are unhealthy: %s", text.FirstN(down, maxNamed)))
	default:
		return yes(kind, etcdv1.HealthyReason)
	}
}

func (f facts) size() metav1.Condition {
	voters := 0
	for _, m := range f.world.Members {
		if !m.Learner {
			voters++
		}
	}
	switch {
	case !f.world.Initialized || !f.world.Quorum:
		return metav1.Condition{
			Type: etcdv1.EtcdClusterResizeCompleted, Status: metav1.ConditionUnknown, Reason: etcdv1.WaitingForMembersReason, Message: "Waiting for etcd to report its members",
		}
	case voters != f.world.Replicas:
		return no(etcdv1.EtcdClusterResizeCompleted, etcdv1.ScalingReason, fmt.Sprintf("Etcd has %d members, %d are wanted", voters, f.world.Replicas))
	default:
		return yes(etcdv1.EtcdClusterResizeCompleted, etcdv1.UpToDateReason)
	}
}

func (f facts) upToDate() metav1.Condition {
	if w := f.wait; w != nil && w.Reason == etcdv1.InvalidTemplateReason {
		return no(etcdv1.EtcdMachinesSpecUpToDate, w.Reason, w.Message)
	}
	var outdated []string
	for _, m := range f.world.Machines {
		if m.Outdated && !m.Deleting {
			outdated = append(outdated, m.Name)
		}
	}
	if len(outdated) > 0 {
		return no(etcdv1.EtcdMachinesSpecUpToDate, etcdv1.RollingOutReason, fmt.Sprintf("Replacing machines one at a time: %s", text.FirstN(outdated, maxNamed)))
	}
	if f.world.Initialized && f.world.Quorum && changes(f.action.Kind) {
		return no(etcdv1.EtcdMachinesSpecUpToDate, etcdv1.RollingOutReason, "Completing the replacement of a machine")
	}
	return yes(etcdv1.EtcdMachinesSpecUpToDate, etcdv1.UpToDateReason)
}

func (f facts) machinesReady() metav1.Condition {
	const kind = etcdv1.EtcdMachinesReady
	var stopped []string
	running := 0
	for _, m := range f.world.Machines {
		switch {
		case m.Deleting:
		case m.Active:
			running++
		default:
			stopped = append(stopped, m.Name)
		}
	}
	switch {
	case len(stopped) > 0:
		return no(kind, etcdv1.MachinesNotReadyReason, fmt.Sprintf("Waiting for machines to run: %s", text.FirstN(stopped, maxNamed)))
	case running < f.world.Replicas:
		return no(kind, etcdv1.MachinesNotReadyReason, fmt.Sprintf("Etcd has %d machines that run, %d are wanted", running, f.world.Replicas))
	default:
		return yes(kind, etcdv1.AvailableReason)
	}
}

func (f facts) withoutOutdated() metav1.Condition {
	const kind = etcdv1.EtcdClusterHasNoOutdatedMachines
	var outdated []string
	for _, m := range f.world.Machines {
		if m.Outdated {
			outdated = append(outdated, m.Name)
		}
	}
	if len(outdated) > 0 {
		return no(kind, etcdv1.OutdatedMachinesReason, fmt.Sprintf("Machines of a former spec are left: %s", text.FirstN(outdated, maxNamed)))
	}
	return yes(kind, etcdv1.UpToDateReason)
}

// changes reports whether an action changes members or which machine has an address. Until there is
// nothing to change, an endpoint may lead to a machine that is gone.
func changes(kind plan.Kind) bool {
	switch kind {
	case plan.Order, plan.Assign, plan.Unassign, plan.AddLearner, plan.Promote, plan.MoveLeader, plan.Remove, plan.UpdatePeer:
		return true
	default:
		return false
	}
}

func yes(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason}
}

func no(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// setEtcdHealth reports the health of external etcd to the control plane that uses it.
func setEtcdHealth(k *controlplanev1.KubeadmControlPlane, healthy metav1.Condition) {
	conditions.Set(k, metav1.Condition{
		Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Status: healthy.Status, Reason: healthy.Reason, Message: healthy.Message,
	})
}

// reportable reports whether the condition of a control plane that uses external etcd has to
// change. While Cluster API can't inspect the cluster, it sets this condition and that of the
// components to Unknown, again and again.
func reportable(k *controlplanev1.KubeadmControlPlane, healthy metav1.Condition) bool {
	if len(k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints) == 0 {
		return false
	}
	components := conditions.Get(k, controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition)
	if components == nil || components.Status == metav1.ConditionUnknown {
		return false
	}
	now := conditions.Get(k, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	return now == nil || now.Status != healthy.Status || now.Reason != healthy.Reason || now.Message != healthy.Message
}

// setDataAvailable computes the status of a config whose Secret exists.
func setDataAvailable(config *etcdbootstrapv1.EtcdadmConfig, secret string) {
	config.Status = etcdbootstrapv1.EtcdadmConfigStatus{DataSecretName: &secret, Ready: true, ObservedGeneration: config.Generation}
	conditions.Set(config, metav1.Condition{
		Type: etcdbootstrapv1.DataSecretAvailableCondition, Status: metav1.ConditionTrue, Reason: etcdbootstrapv1.DataSecretAvailableReason,
	})
}
