package cluster

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// now is the time of the tests, and earlier a minute before.
func now() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func earlier() metav1.Time { return metav1.NewTime(now().Add(-time.Minute)) }

// cells returns the words of each line, separated by columns.
func cells(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		var row []string
		for cell := range strings.SplitSeq(strings.TrimRight(line, "\n "), "   ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				row = append(row, cell)
			}
		}
		out = append(out, row)
	}
	return out
}

func TestClusterTable(t *testing.T) {
	ready := anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "one", CreationTimestamp: earlier()}}
	ready.Spec.KubernetesVersion, ready.Spec.ManagementCluster.Name = "1.36", "mgmt"
	ready.Status.Version, ready.Status.ControlPlane, ready.Status.Workers = "v1.36.3", "3/3", "2/2"
	ready.Status.Conditions = []metav1.Condition{{Type: anywherev1.Ready, Status: metav1.ConditionTrue}}
	fresh := anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "two"}}
	fresh.Spec.KubernetesVersion, fresh.Spec.Management = "1.35", ptr.To(false)
	var out bytes.Buffer
	if err := clusterTable(&out, []anywherev1.Cluster{ready, fresh}, now()); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"NAMESPACE", "NAME", "KUBERNETES", "CONTROL PLANE", "WORKERS", "READY", "MANAGED BY", "AGE"},
		{"team-a", "one", "v1.36.3", "3/3", "2/2", "True", "mgmt", "60s"},
		{"team-b", "two", "1.35", "-", "-", "Unknown", "-", "-"},
	}
	if diff := cmp.Diff(want, cells(out.String())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestMachineTableIsSortedByCluster(t *testing.T) {
	machine := func(cluster, name string, labels map[string]string) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: earlier()}}
		m.Spec.ClusterName = cluster
		return m
	}
	worker := machine("two", "two-b", nil)
	worker.Spec.Version, worker.Status.Phase, worker.Status.NodeRef.Name = "v1.36.3", "Running", "node-b"
	worker.Status.Addresses = clusterv1.MachineAddresses{{Address: "192.0.2.7"}}
	worker.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue}}
	controlPlane := machine("one", "one-a", map[string]string{clusterv1.MachineControlPlaneLabel: ""})
	var out bytes.Buffer
	if err := machineTable(&out, []clusterv1.Machine{worker, machine("two", "two-a", nil), controlPlane}, now()); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"CLUSTER", "NAME", "ROLE", "VERSION", "PHASE", "READY", "NODE", "ADDRESS", "AGE"},
		{"one", "one-a", "control plane", "-", "-", "Unknown", "-", "-", "60s"},
		{"two", "two-a", "worker", "-", "-", "Unknown", "-", "-", "60s"},
		{"two", "two-b", "worker", "v1.36.3", "Running", "True", "node-b", "192.0.2.7", "60s"},
	}
	if diff := cmp.Diff(want, cells(out.String())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestNodeState(t *testing.T) {
	ready := metav1.Condition{Type: anywherev1.Ready, Status: metav1.ConditionTrue}
	for want, n := range map[string]*inspect.Node{
		"Deleting": {Kind: "Cluster", Deleting: true, Failure: "x", Paused: true},
		"Failed":   {Kind: "Cluster", Failure: "x", Paused: true},
		"Paused":   {Kind: "Cluster", Paused: true},
		"Ready":    {Kind: "Cluster", Conditions: []metav1.Condition{ready}},
		"NotReady": {Kind: "Cluster", Conditions: []metav1.Condition{{Type: anywherev1.Ready, Status: metav1.ConditionFalse}}},
	} {
		if got := state(n); got != want {
			t.Errorf("state %q of %+v, want %q", got, n, want)
		}
	}
}

func TestTreeShowsUnmetConditionsBelowTheirObject(t *testing.T) {
	tree := &inspect.Node{Kind: "Cluster", Name: "one", Created: earlier(), Conditions: []metav1.Condition{
		{Type: anywherev1.Ready, Status: metav1.ConditionFalse, Reason: "ScalingUp", Message: "1 of 2\n workers", LastTransitionTime: earlier()},
		{Type: anywherev1.ControlPlaneReady, Status: metav1.ConditionTrue},
		{Type: "SomethingElse", Status: metav1.ConditionFalse},
	}, Children: []*inspect.Node{{Kind: "Machine", Name: "one-m", Detail: "worker", Created: earlier()}}}
	var out bytes.Buffer
	if err := printTree(&out, tree, now()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	want := [][]string{
		{"OBJECT", "STATE", "AGE", "DETAIL"},
		{"Cluster/one", "NotReady", "60s"},
		{"✗ Ready", "ScalingUp", "60s", "1 of 2 workers"},
		{"Machine/one-m", state(tree.Children[0]), "60s", "worker"},
	}
	if diff := cmp.Diff(want, cells(strings.TrimSuffix(out.String(), "\n"))); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(lines[2], "  ✗ ") || !strings.HasPrefix(lines[3], "  Machine/") {
		t.Errorf("the tree is not indented:\n%s", out.String())
	}
}

func TestExplanationIsPrintedAsAChain(t *testing.T) {
	a := inspect.Answer{Next: "free a server", Chain: []inspect.Link{
		{Kind: "Cluster", Name: "one", Condition: "Ready", Message: "no workers", Since: earlier()},
		{Kind: "Machine", Name: "one-m", Condition: "Ready", Message: "no device", Since: earlier()},
		{Kind: "PacketMachine", Name: "one-m", Condition: "InstanceReady", Message: "no server", Since: earlier()},
	}}
	var out bytes.Buffer
	if err := printAnswer(&out, a, now()); err != nil {
		t.Fatal(err)
	}
	want := `Cluster one is not Ready: no workers (since 60s)
└ because Machine one-m is not Ready: no device (since 60s)
  └ because PacketMachine one-m is not InstanceReady: no server (since 60s)
What to do: free a server
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestTimelineHasStagesAndEntries(t *testing.T) {
	var out bytes.Buffer
	err := printTimeline(&out, inspect.Timeline{
		Stages:  []inspect.Stage{{Name: "created", At: earlier()}, {Name: "ready", At: metav1.NewTime(now()), Seconds: 60}},
		Entries: []inspect.Entry{{Seconds: 2, Object: "Machine/one-m", What: "created"}, {Seconds: 60, Object: "PacketMachine/one-m", What: "no server", Warning: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"STAGE", "AT", "TOOK"},
		{"created", "11:59:00", "0.0s"},
		{"ready", "12:00:00", "60.0s"},
		nil,
		{"SECONDS", "OBJECT", "WHAT"},
		{"+2s", "Machine/one-m", "created"},
		{"+60s", "PacketMachine/one-m", "! no server"},
	}
	if diff := cmp.Diff(want, cells(out.String())); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}

func TestUpgradePlanListsVersionsBeforeFields(t *testing.T) {
	for name, tt := range map[string]struct {
		plan *upgradePlan
		want [][]string
	}{
		"nothing changes": {&upgradePlan{}, [][]string{{"The cluster is up to date."}}},
		"both change": {
			&upgradePlan{
				Components: []component{{"kubernetes", "1.35", "1.36"}, {"drover", "", "v0.6.0"}},
				Changes:    []lifecycle.Difference{{Object: "Cluster/one", Path: "spec.count", From: "1", To: "3"}, {Object: "Cluster/one", Path: "spec.gone", From: "x"}},
			},
			[][]string{
				{"NAME", "CURRENT VERSION", "NEXT VERSION"},
				{"kubernetes", "1.35", "1.36"},
				{"drover", "-", "v0.6.0"},
				{"Cluster/one spec.count", "1", "3"},
				{"Cluster/one spec.gone", "x", "-"},
			},
		},
	} {
		var out bytes.Buffer
		if err := printUpgradePlan(&out, tt.plan); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, cells(out.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUpgradePlanListsAddOnsByStage(t *testing.T) {
	var out bytes.Buffer
	p := &upgradePlan{Components: []component{{"kubernetes", "1.35", "1.36"}}, AddOns: []lockstep.AddOn{
		{Kind: "HelmChartProxy", Name: "cilium", Stage: addonsv1.BeforeControlPlane},
		{Kind: "Package", Name: "agent", Stage: addonsv1.AfterWorkers, Problem: "it is too old"},
	}}
	if err := printUpgradePlan(&out, p); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"NAME", "CURRENT VERSION", "NEXT VERSION"},
		{"kubernetes", "1.35", "1.36"},
		nil,
		{"UPGRADED", "KIND", "ADD-ON", "PROBLEM"},
		{"BeforeControlPlane", "HelmChartProxy", "cilium", "-"},
		{"AfterWorkers", "Package", "agent", "it is too old"},
	}
	if diff := cmp.Diff(want, cells(out.String())); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestSkippedWaitIsForOneVersion(t *testing.T) {
	c := &anywherev1.Cluster{}
	c.Spec.KubernetesVersion = "1.36"
	skipAddOnWait(c)
	if got := c.Annotations[anywherev1.SkipAddOnWaitAnnotation]; got != "1.36" {
		t.Errorf("the annotation is %q", got)
	}
}

func TestVerdictListsEveryProblemWithItsRemedy(t *testing.T) {
	one := spec.Violation{Path: "spec.a", Problem: "is wrong", Remedy: "correct it"}
	for name, tt := range map[string]struct {
		file string
		v    verdict
		want string
	}{
		"valid":            {"one.yaml", verdict{Valid: true}, "one.yaml is valid.\n"},
		"standard input":   {"-", verdict{Valid: true, Ignored: []string{"Pod \"x\""}}, "Ignoring Pod \"x\": not one of Drover's kinds.\nstandard input is valid.\n"},
		"one problem":      {"one.yaml", verdict{Violations: []spec.Violation{one}}, "✗ spec.a: is wrong\n    correct it\none.yaml is invalid: 1 problem.\n"},
		"several problems": {"one.yaml", verdict{Violations: []spec.Violation{one, {Path: "spec.b", Problem: "is missing"}}}, "✗ spec.a: is wrong\n    correct it\n✗ spec.b: is missing\none.yaml is invalid: 2 problems.\n"},
	} {
		var out bytes.Buffer
		if err := printVerdict(&out, tt.file, tt.v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnshippedVersionIsRejectedForManagementClustersOnly(t *testing.T) {
	config := func(minor string, management bool) *spec.Config {
		c := &anywherev1.Cluster{}
		c.Spec.KubernetesVersion, c.Spec.Management = minor, ptr.To(management)
		return &spec.Config{Cluster: c}
	}
	for name, tt := range map[string]struct {
		config   *spec.Config
		rejected bool
	}{
		"a version that ships":  {config("1.36", true), false},
		"one that does not":     {config("1.31", true), true},
		"of a workload cluster": {config("1.31", false), false},
	} {
		if got := unshipped(tt.config); (len(got) > 0) != tt.rejected {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestValidationReportsTheVersionWithOtherProblems(t *testing.T) {
	text, err := generate(t, "one", "-p", "docker")
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`kubernetesVersion: .*`)
	wrong := strings.Replace(minor.ReplaceAllString(text, `kubernetesVersion: "1.31"`), "count: 1", "count: 2", 1)
	var paths []string
	for _, v := range check([]byte(wrong)).Violations {
		paths = append(paths, v.Path)
	}
	if want := []string{"spec.controlPlaneConfiguration.count", "spec.kubernetesVersion"}; !slices.Equal(paths, want) {
		t.Errorf("violations of %q, want %q", paths, want)
	}
	twice := check([]byte(minor.ReplaceAllString(text, `kubernetesVersion: latest`)))
	if len(twice.Violations) != 1 {
		t.Errorf("an invalid version is reported as %v", twice.Violations)
	}

	if text, err = generate(t, "one", "-p", "docker", "--workload"); err != nil {
		t.Fatal(err)
	}
	later := check([]byte(strings.Replace(minor.ReplaceAllString(text, `kubernetesVersion: "1.99"`), "count: 1", "Count: 1", 1)))
	warnings := strings.Join(later.Warnings, "\n")
	if !later.Valid || !strings.Contains(warnings, "spec.controlPlaneConfiguration.Count: read as count\nspec.kubernetesVersion: ") {
		t.Errorf("valid is %t, warnings are %q", later.Valid, warnings)
	}
	for version, want := range map[string]int{`"1.99"`: 1, "latest": 0} { // what is no version is a violation
		invalid := check([]byte(strings.Replace(minor.ReplaceAllString(text, "kubernetesVersion: "+version), "count: 1", "count: 2", 1)))
		if invalid.Valid || len(invalid.Warnings) != want {
			t.Errorf("version %s with another problem: valid is %t, warnings are %q", version, invalid.Valid, invalid.Warnings)
		}
	}
}

func TestPlanOutputAcceptsText(t *testing.T) {
	for format, valid := range map[string]bool{"text": true, "json": true, "yaml": true, "xml": false} {
		var o planOutput
		if err := o.Set(format); (err == nil) != valid {
			t.Errorf("-o %s: %v", format, err)
		}
	}
}

func TestKubeconfigDeterminesTheRoleOfACluster(t *testing.T) {
	tests := map[string]struct {
		management *bool
		managedBy  string
		verb       lifecycle.Verb
		kubeconfig string
		itself     bool
		workload   bool
		rejected   bool
	}{
		"nothing is given":                       {nil, "", lifecycle.Create, "", false, false, false},
		"a kubeconfig decides":                   {nil, "", lifecycle.Create, "m", false, true, false},
		"the spec decides, workload":             {ptr.To(false), "", lifecycle.Create, "", false, true, false},
		"both agree":                             {ptr.To(false), "", lifecycle.Create, "m", false, true, false},
		"a named management cluster":             {nil, "mgmt", lifecycle.Create, "m", false, true, false},
		"the cluster itself":                     {nil, "one", lifecycle.Create, "", false, false, false},
		"creating contradicts":                   {nil, "one", lifecycle.Create, "m", false, false, true},
		"creating contradicts, explicitly":       {ptr.To(true), "", lifecycle.Create, "m", false, false, true},
		"an upgrade may name its own kubeconfig": {nil, "one", lifecycle.Upgrade, "m", false, false, false},
		"so may a deletion":                      {ptr.To(true), "", lifecycle.Delete, "m", false, false, false},
		"an upgrade of a workload cluster":       {nil, "", lifecycle.Upgrade, "m", false, true, false},
		"an upgrade of the cluster itself":       {nil, "", lifecycle.Upgrade, "m", true, false, false},
		"a deletion of the cluster itself":       {nil, "", lifecycle.Delete, "m", true, false, false},
		"a new cluster does not exist yet":       {nil, "", lifecycle.Create, "m", true, true, false},
	}
	for name, tt := range tests {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		c.Spec.Management, c.Spec.ManagementCluster.Name = tt.management, tt.managedBy
		err := completeRole(&spec.Config{Cluster: c}, tt.verb, tt.kubeconfig, func() bool { return tt.itself })
		if (err != nil) != tt.rejected || err == nil && c.IsManaged() != tt.workload {
			t.Errorf("%s: a workload cluster: %v, %v", name, c.IsManaged(), err)
		}
	}
}
