package audit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func user(name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: name, Groups: []string{"team"}}
}

func cluster(edit func(*anywherev1.Cluster)) *anywherev1.Cluster {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "billy", Namespace: "herd", UID: "u", Generation: 1}}
	c.Spec.KubernetesVersion = "1.35"
	c.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "md-0", Count: ptr.To(1)}}
	if edit != nil {
		edit(c)
	}
	return c
}

func TestChangesOmitSecretValues(t *testing.T) {
	old := cluster(func(c *anywherev1.Cluster) {
		c.Spec.ProxyConfiguration = &anywherev1.ProxyConfiguration{HTTPProxy: "http://me:secret@gate:1"}
	})
	asked := cluster(func(c *anywherev1.Cluster) {
		c.Spec.KubernetesVersion = "1.36"
		c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(3)
		c.Spec.ProxyConfiguration = &anywherev1.ProxyConfiguration{HTTPProxy: "http://me:other@gate:1"}
	})
	got := Changes(&old.Spec, &asked.Spec)
	want := []droverv1.AuditedChange{
		{Path: "spec.kubernetesVersion", From: "1.35", To: "1.36"},
		{Path: "spec.proxyConfiguration.httpProxy"},
		{Path: "spec.workerNodeGroupConfigurations[md-0].count", From: "1", To: "3"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestActionNamesTheMostImportantChange(t *testing.T) {
	for want, paths := range map[droverv1.AuditAction][]string{
		droverv1.Upgraded: {"spec.controlPlaneConfiguration.count", "spec.workerNodeGroupConfigurations[a].kubernetesVersion"},
		droverv1.Scaled:   {"spec.proxyConfiguration.httpProxy", "spec.workerNodeGroupConfigurations[a].autoscalingConfiguration.maxCount"},
		droverv1.Changed:  {"spec.clusterNetwork.dns.resolvConf.path"},
	} {
		var changes []droverv1.AuditedChange
		for _, p := range paths {
			changes = append(changes, droverv1.AuditedChange{Path: p})
		}
		if got := action(changes); got != want {
			t.Errorf("%v: action %s, want %s", paths, got, want)
		}
	}
}

// asked returns the Cluster that the API server stores after a user has changed it.
func asked(t *testing.T, old *anywherev1.Cluster, by string, edit func(*anywherev1.Cluster)) *anywherev1.Cluster {
	t.Helper()
	fresh := old.DeepCopy()
	edit(fresh)
	if err := Stamp(old, fresh, user(by), noon); err != nil {
		t.Fatal(err)
	}
	if len(Changes(&old.Spec, &fresh.Spec)) > 0 {
		fresh.Generation++
	}
	return fresh
}

func records(c *anywherev1.Cluster) []string {
	var out []string
	for _, r := range Pending(c) {
		out = append(out, fmt.Sprintf("%s %s %s", r.Name, r.Spec.User, r.Spec.Action))
	}
	return out
}

func TestChangesArePendingUntilRecorded(t *testing.T) {
	c := cluster(nil)
	if err := Stamp(nil, c, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	c = asked(t, c, "administrator", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	c = asked(t, c, "other", func(c *anywherev1.Cluster) { c.Labels = map[string]string{"a": "b"} })
	c = asked(t, c, "operator", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(2) })
	if d := cmp.Diff([]string{"u-1 creator Created", "u-2 administrator Upgraded", "u-3 operator Scaled"}, records(c)); d != "" {
		t.Error(d)
	}
	c.Status.AuditedSequence = 2
	if d := cmp.Diff([]string{"u-3 operator Scaled"}, records(c)); d != "" {
		t.Errorf("after two were recorded: %s", d)
	}
	c.Status.AuditedSequence = 3
	c = asked(t, c, "operator", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(3) })
	if got := c.Annotations[Annotation]; strings.Contains(got, "creator") || len(records(c)) != 1 {
		t.Errorf("after all were recorded, the annotation is %q", got)
	}
}

// TestRequestsThatRecordNothingKeepTheAnnotation makes sure that whoever applies the same spec
// repeatedly, as Flux does, finds no difference.
func TestRequestsThatRecordNothingKeepTheAnnotation(t *testing.T) {
	created := cluster(nil)
	if err := Stamp(nil, created, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	recorded := created.DeepCopy()
	recorded.Status.AuditedSequence, recorded.Status.AuditedGeneration = 1, 1
	for name, old := range map[string]*anywherev1.Cluster{"unrecorded": created, "recorded": recorded, "never annotated": cluster(nil)} {
		for what, edit := range map[string]func(*anywherev1.Cluster){
			"nothing":             func(*anywherev1.Cluster) {},
			"a label":             func(c *anywherev1.Cluster) { c.Labels = map[string]string{"a": "b"} },
			"the annotation":      func(c *anywherev1.Cluster) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, Annotation, "[]") },
			"without annotations": func(c *anywherev1.Cluster) { c.Annotations = nil },
		} {
			if got := asked(t, old, "flux", edit); got.Annotations[Annotation] != old.Annotations[Annotation] {
				t.Errorf("%s, %s: annotation %q, before %q", name, what, got.Annotations[Annotation], old.Annotations[Annotation])
			}
		}
	}
}

func TestUsersCannotForgeChanges(t *testing.T) {
	c := cluster(func(c *anywherev1.Cluster) {
		c.Annotations = map[string]string{Annotation: `[{"generation":1,"action":"Created","user":"administrator"}]`}
	})
	if err := Stamp(nil, c, user("other"), noon); err != nil {
		t.Fatal(err)
	}
	c = asked(t, c, "other", func(c *anywherev1.Cluster) { c.Annotations[Annotation] = `[]` })
	c = asked(t, c, "other", func(c *anywherev1.Cluster) { delete(c.Annotations, Annotation) })
	c = asked(t, c, "other", func(c *anywherev1.Cluster) { c.Annotations[Annotation] = "garbage"; c.Spec.KubernetesVersion = "1.36" })
	if d := cmp.Diff([]string{"u-1 other Created", "u-2 other Upgraded"}, records(c)); d != "" {
		t.Error(d)
	}
}

func TestRejectedRequestsAreNotRecorded(t *testing.T) {
	c := cluster(nil)
	if err := Stamp(nil, c, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	next := c.DeepCopy()
	next.Spec.KubernetesVersion = "1.36"
	if err := Stamp(c, next, user("administrator"), noon); err != nil {
		t.Fatal(err)
	}
	next.Generation = 1 // the API server did not store it
	if d := cmp.Diff([]string{"u-1 creator Created"}, records(next)); d != "" {
		t.Error(d)
	}
}

// TestManyChangesDoNotHideOthers buries a change among others of the same request.
func TestManyChangesDoNotHideOthers(t *testing.T) {
	created := cluster(nil)
	if err := Stamp(nil, created, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	changed := asked(t, created, "intruder", func(c *anywherev1.Cluster) {
		c.Spec.ControlPlaneConfiguration.Labels = map[string]string{}
		for i := range 60 {
			c.Spec.ControlPlaneConfiguration.Labels[fmt.Sprintf("l%02d", i)] = "x"
		}
		c.Spec.IdentityProviderRefs = []anywherev1.Ref{{Kind: anywherev1.OIDCConfigKind, Name: "evil"}}
		c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(9)
	})
	var machine anywherev1.PacketMachineConfigSpec
	for i := range 60 {
		machine.Tags = append(machine.Tags, fmt.Sprint(i))
	}
	machine.Users = []anywherev1.UserConfiguration{{Name: "root", SSHAuthorizedKeys: []string{"ssh-ed25519 evil"}}}
	var request admissionv1.AdmissionRequest
	for name, tc := range map[string]struct {
		record *droverv1.AuditRecord
		more   []string
	}{
		"of a Cluster": {Pending(changed)[1], []string{
			"spec.controlPlaneConfiguration (10 more)", "spec.identityProviderRefs (2 more)", "spec.workerNodeGroupConfigurations (1 more)",
		}},
		"of a config": {
			ObjectChange(created, droverv1.AuditedObject{}, Changes(anywherev1.PacketMachineConfigSpec{}, machine), request, noon),
			[]string{"spec.tags (10 more)", "spec.users (2 more)"},
		},
	} {
		var more []string
		for _, c := range tc.record.Spec.Changes[maxChanges:] {
			more = append(more, c.Path)
		}
		if d := cmp.Diff(tc.more, more); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestTextOfChangesIsBounded(t *testing.T) {
	c := asked(t, cluster(nil), "creator", func(c *anywherev1.Cluster) {
		c.Spec.ControlPlaneConfiguration.Labels = map[string]string{strings.Repeat("k", 100<<10): "x"}
	})
	if n := len(Pending(c)[0].Spec.Changes[0].Path); n > maxText {
		t.Errorf("the path has %d bytes", n)
	}
}

// TestBurstOfChangesDisplacesNone makes a change and then many others before any is recorded.
func TestBurstOfChangesDisplacesNone(t *testing.T) {
	c := cluster(nil)
	who := authenticationv1.UserInfo{Username: "creator"}
	for i := range 1000 {
		who.Groups = append(who.Groups, strings.Repeat("g", 50)+fmt.Sprint(i))
	}
	if err := Stamp(nil, c, who, noon); err != nil {
		t.Fatal(err)
	}
	scale := func(c *anywherev1.Cluster, count int) (*anywherev1.Cluster, error) {
		next := c.DeepCopy()
		next.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(count)
		next.Generation++
		return next, Stamp(c, next, user("creator"), noon)
	}
	rejected := 0
	for i := range 3 * keep {
		next, err := scale(c, i+10)
		switch {
		case err == nil:
			c = next
		case errors.Is(err, ErrBacklog):
			rejected++
		default:
			t.Fatal(err)
		}
	}
	if n := len(c.Annotations[Annotation]); n > 64<<10 {
		t.Errorf("the annotation has %d bytes", n)
	}
	if got := records(c); rejected != 2*keep+1 || len(got) != keep || got[0] != "u-1 creator Created" {
		t.Errorf("%d changes were rejected, %d are pending, the first one is %q", rejected, len(got), got[0])
	}
	// The manager's own writes, which change nothing to record, succeed.
	c = asked(t, c, "manager", func(c *anywherev1.Cluster) { c.Finalizers = []string{anywherev1.ClusterFinalizer} })
	c.Status.AuditedSequence = 1
	if _, err := scale(c, 5); err != nil {
		t.Errorf("after a change was recorded: %v", err)
	}
}

func TestPausesAreRecorded(t *testing.T) {
	c := cluster(nil)
	if err := Stamp(nil, c, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	c = asked(t, c, "intruder", func(c *anywherev1.Cluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.PausedAnnotation, "true")
	})
	c = asked(t, c, "intruder", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	c = asked(t, c, "intruder", func(c *anywherev1.Cluster) { delete(c.Annotations, anywherev1.PausedAnnotation) })
	want := []string{"u-1 creator Created", "u-1-2 intruder Paused", "u-2 intruder Upgraded", "u-2-4 intruder Resumed"}
	if d := cmp.Diff(want, records(c)); d != "" {
		t.Error(d)
	}
	// What happens next is not taken for what was recorded.
	c.Status.AuditedSequence, c.Status.AuditedGeneration = 4, 2
	c = asked(t, c, "intruder", func(c *anywherev1.Cluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.PausedAnnotation, "true")
	})
	if d := cmp.Diff([]string{"u-2-5 intruder Paused"}, records(c)); d != "" {
		t.Error(d)
	}
}

func TestPausedCreationIsRecorded(t *testing.T) {
	c := cluster(func(c *anywherev1.Cluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.PausedAnnotation, "true")
	})
	if err := Stamp(nil, c, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"u-1 creator Created", "u-1-2 creator Paused"}, records(c)); d != "" {
		t.Error(d)
	}
}

func TestEntriesOfAnEarlierDroverArePending(t *testing.T) {
	c := cluster(func(c *anywherev1.Cluster) {
		c.Generation, c.Status.AuditedGeneration = 2, 1
		c.Annotations = map[string]string{Annotation: `[{"generation":1,"action":"Created","user":"a"},{"generation":2,"action":"Scaled","user":"b"}]`}
	})
	c = asked(t, c, "c", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	if d := cmp.Diff([]string{"u-2 b Scaled", "u-3 c Upgraded"}, records(c)); d != "" {
		t.Error(d)
	}
}

func TestCountsOfAnEarlierDroverArePending(t *testing.T) {
	c := cluster(func(c *anywherev1.Cluster) {
		c.Annotations = map[string]string{Annotation: `[{"generation":1,"sequence":7,"action":"Evicted","user":"drover","evicted":42,"metadata":true}]`}
	})
	got := Pending(c)
	if len(got) != 1 || got[0].Spec.Evicted != 42 || got[0].Labels[droverv1.EvictedLabel] != "42" {
		t.Errorf("pending are %v", got)
	}
}

func TestEveryoneWhoRequestsADeletionIsRecorded(t *testing.T) {
	c := cluster(nil)
	first, second := Deletion(c, user("a"), noon), Deletion(c, user("b"), noon)
	if first.Name == second.Name || first.Name != Deletion(c, user("a"), noon.Add(time.Hour)).Name {
		t.Errorf("the records are %s and %s", first.Name, second.Name)
	}
}
