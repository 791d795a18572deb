package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// workload creates a workload cluster on the management plane, and waits until it is ready.
func (x *twoSides) workload(name string) {
	x.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	like := x.management().Config
	config := &spec.Config{Cluster: like.Cluster, Packet: like.Packet, Machines: like.Machines}
	config.Cluster.ObjectMeta, config.Packet.ObjectMeta = meta, meta
	config.Cluster.Spec.Management, config.Cluster.Spec.ManagementCluster.Name = ptr.To(false), ""
	config.Cluster.Spec.DatacenterRef.Name = name
	for _, o := range config.Objects() {
		if err := client.IgnoreAlreadyExists(x.at.client.Create(x.Context(), o)); err != nil {
			x.Fatal(err)
		}
	}
	for !apimeta.IsStatusConditionTrue(x.read(x.at, name).Status.Conditions, anywherev1.Ready) {
		time.Sleep(50 * time.Millisecond)
	}
}

// read returns a cluster of a side, or nil.
func (x *twoSides) read(s *side, name string) *anywherev1.Cluster {
	x.Helper()
	c := &anywherev1.Cluster{}
	err := s.client.Get(x.Context(), client.ObjectKey{Namespace: "default", Name: name}, c)
	if client.IgnoreNotFound(err) != nil {
		x.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return c
}

func (x *twoSides) promotion(with ...string) *Promotion {
	return &Promotion{
		Options: Options{Dir: x.dir}, Cluster: client.ObjectKey{Name: "shepherd"}, With: with, REST: x.at.config, Image: "drover.example/manager:1",
	}
}

// managedOnly checks that a cluster is on one side only, not paused, and managed by the given name.
func (x *twoSides) managedOnly(name, by string, on, notOn *side) {
	x.Helper()
	if x.read(notOn, name) != nil {
		x.Errorf("cluster %s is still on the management plane that it left", name)
	}
	c := x.read(on, name)
	if c == nil || c.IsPaused() || c.ManagedBy() != by {
		x.Errorf("cluster %s is %+v, want one that is managed by %q", name, c, by)
	}
}

func TestPromotionResumesAfterAFailureInEachPhase(t *testing.T) {
	x := newTwoSides(t)
	x.workload("shepherd")
	x.workload("sheep")
	failureTest{t, func() (*phase.Plan, error) { return x.promotion("sheep").Plan(), nil }, x.files.Record(), map[string]trouble{
		SetupAndValidate: x.at.refusing, InstallEKSAComponents: x.itself.refusing,
		MoveManagementCluster: x.itself.refusing, UpdateClusterAndGitResources: x.itself.refusing,
	}}.run()
	x.managedOnly("shepherd", "shepherd", x.itself, x.at)
	x.managedOnly("sheep", "shepherd", x.itself, x.at)
	if c := x.read(x.itself, "shepherd"); !c.IsSelfManaged() {
		t.Errorf("the cluster does not manage itself: %+v", c.Spec)
	}
}

// adoption hands the cluster over in one direction or the other.
func (x *twoSides) adoption(from, to *side) *Adoption {
	return &Adoption{Options: Options{Dir: x.dir}, Cluster: client.ObjectKey{Name: "sheep"}, From: from.config, FromFile: "from", REST: to.config}
}

// acting returns on how many sides controllers act on the cluster.
func (x *twoSides) acting() int {
	x.Helper()
	n := 0
	for _, s := range []*side{x.at, x.itself} {
		ours := x.read(s, "sheep")
		below := &clusterv1.Cluster{}
		err := s.client.Get(x.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: "sheep"}, below)
		if ours != nil && !ours.IsPaused() || err == nil && !ptr.Deref(below.Spec.Paused, false) {
			n++
		}
	}
	return n
}

// TestNeverTwoManagersAct kills a handover after ever more writes on either side, checks that at
// most one side acts on the cluster, and lets the same command finish.
func TestNeverTwoManagersAct(t *testing.T) {
	x := newTwoSides(t)
	x.workload("sheep")
	from, to := x.at, x.itself
	for name, dying := range map[string]func() *side{"source": func() *side { return from }, "destination": func() *side { return to }} {
		writes := int64(1)
		for ; x.killHandover(from, to, dying(), writes); writes += 3 {
			if n := x.acting(); n > 1 {
				t.Errorf("killed after %d writes on the %s, %d sides act on the cluster", writes, name, n)
			}
			x.finish(x.adoption(from, to))
			x.managedOnly("sheep", "", to, from)
			from, to = to, from
		}
		from, to = to, from
		t.Logf("a handover makes about %d writes on the %s", writes, name)
		if writes < 7 {
			t.Errorf("a handover makes less than %d writes on the %s: this proves nothing", writes, name)
		}
	}
}

// killHandover runs a handover that ends after some writes of the move on one side. It reports
// whether that happened.
func (x *twoSides) killHandover(from, to, dying *side, writes int64) bool {
	x.Helper()
	ctx, kill := context.WithCancel(x.Context())
	defer kill()
	dying.died = kill
	_, err := runFree(ctx, x.adoption(from, to).Plan(), Files{Dir: x.dir, Cluster: "sheep"}.Record(), func(e phase.Event) {
		if e.Phase == SetupAndValidate && e.Status == phase.Done {
			dying.left.Store(writes)
		}
		if e.Phase == MoveManagementCluster && e.Status == phase.Done {
			dying.left.Store(0)
		}
	})
	dying.left.Store(0)
	dying.down.Store(false)
	if err != nil && ctx.Err() == nil {
		x.Fatal(err)
	}
	return err != nil
}

func (x *twoSides) finish(a *Adoption) {
	x.Helper()
	if _, err := runFree(x.Context(), a.Plan(), Files{Dir: x.dir, Cluster: "sheep"}.Record(), func(phase.Event) {}); err != nil {
		x.Fatal(err)
	}
}

func TestImmovableClustersAreRejected(t *testing.T) {
	ready := []metav1.Condition{{Type: anywherev1.Ready, Status: metav1.ConditionTrue}}
	for _, tc := range []struct {
		name   string
		change func(*anywherev1.Cluster)
		want   string
	}{
		{"ready", func(*anywherev1.Cluster) {}, ""},
		{"not ready", func(c *anywherev1.Cluster) { c.Status.Conditions = nil }, "not ready"},
		{"deleted", func(c *anywherev1.Cluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, "being deleted"},
		{"a management cluster", func(c *anywherev1.Cluster) { c.Spec.Management = nil }, "is a management cluster"},
		{"paused", func(c *anywherev1.Cluster) { c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"} }, "is paused"},
		{"in Git", func(c *anywherev1.Cluster) { c.Spec.GitOpsRef = &anywherev1.Ref{Kind: "FluxConfig", Name: "fleet"} }, "is in Git"},
	} {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		c.Spec.Management, c.Status.Conditions = ptr.To(false), ready
		tc.change(c)
		err := errors.Join(immovable(c)...)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestPromotionNamesEachClusterOnce(t *testing.T) {
	p := &Promotion{Cluster: client.ObjectKey{Name: "a"}, With: []string{"b", "c"}}
	if got := p.names(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("clusters %v", got)
	}
	if plan := p.Plan(); len(plan.Phases[2].Changes) != 3 {
		t.Errorf("changes %v", plan.Phases[2].Changes)
	}
}
