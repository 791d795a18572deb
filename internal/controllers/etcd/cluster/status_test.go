package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// formed returns the facts of a healthy etcd with one member.
func formed(action plan.Kind) facts {
	member := plan.Member{ID: 1, Name: "c-0", Healthy: true, Leader: true}
	return facts{
		clusterName: "c",
		endpoints:   []string{"192.0.2.1"}, certificates: true, hasFormed: true, action: plan.Action{Kind: action},
		world: &plan.World{
			Replicas: 1, Initialized: true, Quorum: true, Members: []plan.Member{member}, Machines: []plan.Machine{{Name: "c-0", Active: true}},
		},
	}
}

func TestEtcdIsUpToDateWhenNothingIsLeftToChange(t *testing.T) {
	missing := &reconcile.Wait{Reason: etcdv1.InvalidTemplateReason, Message: "Secret not found"}
	for name, tt := range map[string]struct {
		facts facts
		want  string
	}{
		"nothing to do":                    {formed(plan.Done), "True UpToDate "},
		"the address of a slot moves":      {formed(plan.Assign), "False EtcdRollingUpdateInProgress Completing the replacement of a machine"},
		"a learner is promoted":            {formed(plan.Promote), "False EtcdRollingUpdateInProgress Completing the replacement of a machine"},
		"a former machine is being erased": {formed(plan.Wait), "True UpToDate "},
		"a machine can't be configured":    {func() facts { f := formed(plan.Order); f.wait = missing; return f }(), "False InvalidTemplate Secret not found"},
	} {
		c := meta.FindStatusCondition(tt.facts.conditions(), etcdv1.EtcdMachinesSpecUpToDate)
		if c == nil || string(c.Status)+" "+c.Reason+" "+c.Message != tt.want {
			t.Errorf("%s: %+v, want %q", name, c, tt.want)
		}
	}
	f := formed(plan.Order)
	f.hasFormed, f.world.Initialized, f.wait = false, false, missing
	if c := meta.FindStatusCondition(f.conditions(), etcdv1.Initialized); c.Message != missing.Message {
		t.Errorf("a new etcd: %+v", c)
	}
}

func TestLostQuorumNamesTheCommandThatRestores(t *testing.T) {
	f := formed(plan.Wait)
	f.world.Quorum, f.world.Members = false, nil
	c := meta.FindStatusCondition(f.conditions(), etcdv1.EtcdClusterHealthy)
	const want = "Etcd does not answer, so nothing is removed: power on its machines (drover machine list), " +
		"or restore a snapshot if their disks are lost (drover etcd restore c --from LOCATION)"
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != etcdv1.QuorumLostReason || c.Message != want {
		t.Errorf("got %+v, want %q", c, want)
	}
}

func TestConditionsOfMachines(t *testing.T) {
	with := func(machines ...plan.Machine) facts {
		f := formed(plan.Done)
		f.world.Machines = machines
		return f
	}
	current := plan.Machine{Name: "c-1", Active: true}
	for name, tt := range map[string]struct {
		facts           facts
		ready, outdated string
	}{
		"all run":                        {with(current), "True Available ", "True UpToDate "},
		"one is missing":                 {with(), "False EtcdMachinesNotReady Etcd has 0 machines that run, 1 are wanted", "True UpToDate "},
		"one starts beside its former":   {with(plan.Machine{Name: "c-0", Active: true, Outdated: true}, plan.Machine{Name: "c-1"}), "False EtcdMachinesNotReady Waiting for machines to run: c-1", "False EtcdClusterHasOutdatedMachines Machines of a former spec are left: c-0"},
		"the former one is being erased": {with(current, plan.Machine{Name: "c-0", Outdated: true, Deleting: true}), "True Available ", "False EtcdClusterHasOutdatedMachines Machines of a former spec are left: c-0"},
		"a broken one is being erased":   {with(current, plan.Machine{Name: "c-0", Deleting: true}), "True Available ", "True UpToDate "},
	} {
		for kind, want := range map[string]string{etcdv1.EtcdMachinesReady: tt.ready, etcdv1.EtcdClusterHasNoOutdatedMachines: tt.outdated} {
			c := meta.FindStatusCondition(tt.facts.conditions(), kind)
			if c == nil || string(c.Status)+" "+c.Reason+" "+c.Message != want {
				t.Errorf("%s: %s is %+v, want %q", name, kind, c, want)
			}
		}
	}
	early := facts{endpoints: []string{"192.0.2.1"}, certificates: true}
	if c := meta.FindStatusCondition(early.conditions(), etcdv1.EtcdMachinesReady); c != nil {
		t.Errorf("before machines are known: %+v", c)
	}
}
