package inspect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

func TestNotFoundErrorListsWhatExists(t *testing.T) {
	for want, err := range map[string]*NotFoundError{
		`cluster "a" not found`:                                                  {Kind: "cluster", Name: "a"},
		`cluster "a" not found in namespace "n"`:                                 {Kind: "cluster", Name: "a", Namespace: "n"},
		`add-on "a" not found; existing add-ons: n/b`:                            {Kind: "add-on", Name: "a", Others: []string{"n/b"}},
		`cluster "" not found; existing clusters: n/b, n/c`:                      {Kind: "cluster", Others: []string{"n/b", "n/c"}},
		`x "a" not found; existing xs: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more`: {Kind: "x", Name: "a", Others: strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12")},
	} {
		if got := err.Error(); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
	}
}

func TestExplainSuggestsWhatToDo(t *testing.T) {
	p := &Plane{Host: "https://plane.example.com"}
	group := schema.GroupResource{Resource: "clusters"}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"another API server": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Cluster"}}, "https://plane.example.com is not a Drover management plane"},
		"no access":          {apierrors.NewForbidden(group, "", errors.New("no")), "choose a namespace that you have access to with --namespace"},
		"a lost connection":  {errors.New("connection refused"), "listing clusters: connection refused"},
	} {
		got := p.explain("listing clusters", tt.err)
		if !strings.Contains(got.Error(), tt.want) || !strings.HasPrefix(got.Error(), "listing clusters: ") || !errors.Is(got, tt.err) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if wrap(nil, "reading %q", "x") != nil {
		t.Error("no error becomes one")
	}
	cause := errors.New("cause")
	if got := wrap(cause, "reading %q", "x"); got.Error() != `reading "x": cause` || !errors.Is(got, cause) {
		t.Errorf("error %v", got)
	}
}

func TestExplainRejection(t *testing.T) {
	thing := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetKind(kind)
		u.SetName("web")
		u.SetNamespace(packagesv1.NamespacePrefix + "dev")
		return u
	}
	status := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Message: message, Reason: metav1.StatusReasonForbidden}}
	}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x")
	for name, tt := range map[string]struct {
		kind, want string
		err        error
	}{
		"a webhook": {
			kind: "Package", err: status(`admission webhook "packages.example.com" denied the request: the name is taken` + "\n"),
			want: `Package "web" rejected: the name is taken`,
		},
		"a namespace that does not exist": {
			kind: "Package", err: missing,
			want: `namespace "` + packagesv1.NamespacePrefix + `dev" not found; check that cluster "dev" has a PackageBundleController: ` + missing.Error(),
		},
		"another kind":      {kind: "PackageBundleController", err: missing, want: `writing PackageBundleController "web": ` + missing.Error()},
		"a lost connection": {kind: "Package", err: errors.New("connection refused"), want: `writing Package "web": connection refused`},
	} {
		if got := explainRejection(thing(tt.kind), tt.err).Error(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestSelectPackages(t *testing.T) {
	all := []packagesv1.Package{*PackageTemplate("dev", "a", "x"), *PackageTemplate("dev", "b", "x"), *PackageTemplate("dev", "c", "x")}
	for name, tt := range map[string]struct {
		names, want []string
		err         string
	}{
		"all":                    {nil, []string{"a", "b", "c"}, ""},
		"in the order of naming": {[]string{"c", "a"}, []string{"c", "a"}, ""},
		"one twice":              {[]string{"b", "b"}, []string{"b", "b"}, ""},
		"missing ones": {
			[]string{"x", "a", "y"},
			nil,
			"cluster \"dev\" has no package x, y; list packages with `drover get packages --cluster dev`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := selectPackages(all, "dev", tt.names)
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			var got []string
			for _, p := range found {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackageTemplateCanBeApplied(t *testing.T) {
	p := PackageTemplate("dev", "web", "hello")
	if p.Kind != "Package" || p.APIVersion != packagesv1.GroupVersion.String() || p.Namespace != packagesv1.NamespacePrefix+"dev" || p.Name != "web" || p.Spec.PackageName != "hello" {
		t.Errorf("package %+v", p)
	}
}

func TestNewerFirst(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"v1-36-2", "v1-36-1", -1},
		{"v1-36-9", "v1-36-10", 1},
		{"v1-35-99", "v1-36-1", 1},
		{"v1-36-1", "v1-36-1", 0},
		{"garbage", "v1-36-1", 1},
		{"v1-36-1", "", -1},
		{"a", "b", -1},
	} {
		if got := newerFirst(tt.a, tt.b); got != tt.want {
			t.Errorf("%q against %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := newerFirst(tt.b, tt.a); got != -tt.want {
			t.Errorf("%q against %q: %d, want %d", tt.b, tt.a, got, -tt.want)
		}
	}
}

func TestAdvice(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	root := &Node{Name: "dev"}
	for name, tt := range map[string]struct {
		link Link
		want string
	}{
		"a remedy names the object":  {Link{Name: "dev-1", Reason: infrav1.BootstrapFailedReason}, "see `drover machine logs dev-1` for the error on the machine"},
		"a remedy names the cluster": {Link{Name: "x", Reason: infrav1.EndpointUnhealthyReason}, "run `drover describe cluster dev` to find the unhealthy control plane machine"},
		"etcd without quorum": {Link{Name: "dev-etcd", Reason: etcdv1.QuorumLostReason}, "power on the machines of etcd (`drover machine list`); " +
			"members whose disks are lost can't be replaced, because etcd accepts no changes without quorum: " +
			"restore a snapshot with `drover etcd restore dev --from LOCATION`, as docs/guides/back-up-etcd.md describes, or delete the cluster and create it again"},
		"what just began":                      {Link{Reason: "Waiting", Since: ago(90 * time.Second)}, "wait: in progress for 1m30s; follow it with `drover events cluster dev`"},
		"what takes long":                      {Link{Reason: "Waiting", Since: ago(patience)}, "this takes longer than usual: see `drover describe cluster dev`, `drover events cluster dev` and the manager's log"},
		"a new object":                         {Link{Reason: reasonUnseen, Since: ago(observeLimit - time.Second)}, "wait: in progress for 9s; follow it with `drover events cluster dev`"},
		"one that the manager does not notice": {Link{Reason: reasonUnseen, Since: ago(observeLimit)}, checkManager},
		"a new spec":                           {Link{Reason: reasonBehind, Since: ago(0)}, "wait: in progress for 0s; follow it with `drover events cluster dev`"},
	} {
		if got := advice(root, tt.link, now); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestEveryRemedyIsComplete(t *testing.T) {
	for reason := range remedies {
		text := advice(&Node{Name: "C"}, Link{Name: "O", Reason: reason}, time.Now())
		if strings.ContainsAny(text, "{}") || strings.HasSuffix(text, ".") || strings.TrimSpace(text) != text || text == "" {
			t.Errorf("the remedy for %s is %q", reason, text)
		}
	}
}

func TestUnmetSkipsConditionsThatWaitForOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"none":                         {nil, ""},
		"all met":                      {[]metav1.Condition{met(anywherev1.Ready)}, ""},
		"the first in order":           {[]metav1.Condition{not(anywherev1.Ready, "X"), not(anywherev1.ControlPlaneInitialized, "Y")}, anywherev1.ControlPlaneInitialized},
		"one that waits comes last":    {[]metav1.Condition{not(anywherev1.ControlPlaneReady, anywherev1.ControlPlaneNotInitializedReason), not(anywherev1.WorkersReady, "Y")}, anywherev1.WorkersReady},
		"if there is nothing else":     {[]metav1.Condition{not(anywherev1.ControlPlaneReady, anywherev1.ControlPlaneNotInitializedReason)}, anywherev1.ControlPlaneReady},
		"conditions that do not count": {[]metav1.Condition{not("Decorated", "X")}, ""},
		"unknown is not met":           {[]metav1.Condition{is(anywherev1.Ready, metav1.ConditionUnknown, "X", 1)}, anywherev1.Ready},
	} {
		got := ""
		if c := object(kindCluster, "dev", tt.conditions...).unmet(); c != nil {
			got = c.Type
		}
		if got != tt.want {
			t.Errorf("%s: %q is unmet, want %q", name, got, tt.want)
		}
	}
}

func TestWell(t *testing.T) {
	ready := func(change func(*Node)) *Node {
		n := object(kindCluster, "dev", met(anywherev1.Ready))
		change(n)
		return n
	}
	if !ready(func(*Node) {}).Well() {
		t.Error("a ready object is not well")
	}
	for name, n := range map[string]*Node{
		"deleting":           ready(func(n *Node) { n.Deleting = true }),
		"paused":             ready(func(n *Node) { n.Paused = true }),
		"behind":             ready(func(n *Node) { n.Behind = true }),
		"failed":             ready(func(n *Node) { n.Failure = "x" }),
		"without conditions": ready(func(n *Node) { n.Conditions = nil }),
		"not ready":          ready(func(n *Node) { n.Conditions[0].Status = metav1.ConditionFalse }),
	} {
		if n.Well() {
			t.Errorf("an object is healthy while it is %s", name)
		}
	}
}

func TestWorst(t *testing.T) {
	if worst(nil) != nil {
		t.Error("the worst of nothing is something")
	}
	failed := object(kindMachine, "failed")
	failed.Failure = "x"
	unready := object(kindMachine, "unready", not("Ready", "X"))
	older := object(kindMachine, "older", is("Ready", metav1.ConditionFalse, "X", 30))
	same := object(kindMachine, "a-name", not("Ready", "X"))
	unknown := object(kindMachine, "unknown", is("Ready", metav1.ConditionUnknown, "X", 90))
	fresh := object(kindMachine, "fresh")
	for _, tt := range []struct {
		nodes []*Node
		want  *Node
	}{
		{[]*Node{fresh, unknown, unready, failed}, failed},
		{[]*Node{fresh, unknown, unready}, unready},
		{[]*Node{unready, older}, older},
		{[]*Node{unready, same}, same},
		{[]*Node{fresh, unknown}, unknown},
	} {
		if got := worst(tt.nodes); got != tt.want {
			t.Errorf("the worst is %q, want %q", got.Name, tt.want.Name)
		}
	}
}

func TestEventTime(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}}
	for _, tt := range []struct {
		change func()
		want   time.Time
	}{
		{func() {}, at(1)},
		{func() { e.EventTime = metav1.NewMicroTime(at(2)) }, at(2)},
		{func() { e.LastTimestamp = metav1.NewTime(at(3)) }, at(3)},
	} {
		tt.change()
		if got := eventTime(e); !got.Time.Equal(tt.want) {
			t.Errorf("the event is of %s, want %s", got, tt.want)
		}
	}
}

func TestConcerns(t *testing.T) {
	root := &Node{Kind: kindCluster, Namespace: "team", Name: "dev", Children: []*Node{
		{Kind: kindCAPI, Namespace: "system", Name: "dev"}, {Kind: kindMachine, Namespace: "system", Name: "dev-1"},
	}}
	for _, tt := range []struct {
		kind, namespace, name string
		want                  bool
	}{
		{"Cluster", "team", "dev", true},
		{"Cluster", "system", "dev", true},
		{"Machine", "system", "dev-1", true},
		{"Machine", "team", "dev-1", false},
		{"Machine", "system", "dev", false},
		{"Pod", "system", "dev-1", false},
		{"Cluster API Cluster", "system", "dev", false},
	} {
		e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: tt.kind, Namespace: tt.namespace, Name: tt.name}}
		if got := concerns(e, root); got != tt.want {
			t.Errorf("an event of %s %s/%s concerns the cluster: %t", tt.kind, tt.namespace, tt.name, got)
		}
	}
}

func TestTimelineOrdersEventsAndConditions(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(s int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(s) * time.Second)) }
	root := &Node{
		Kind: kindCluster, Namespace: "team", Name: "dev", Created: after(0),
		Conditions: []metav1.Condition{
			{Type: anywherev1.Ready, Status: metav1.ConditionFalse, Reason: "Why", LastTransitionTime: after(3)},
			{Type: anywherev1.ControlPlaneInitialized, Status: metav1.ConditionTrue, LastTransitionTime: after(2)},
			{Type: "Decorated", Status: metav1.ConditionTrue, LastTransitionTime: after(9)},
		},
	}
	events := []corev1.Event{
		{LastTimestamp: after(1), Type: corev1.EventTypeWarning, Reason: "Failed", Message: "no server", InvolvedObject: corev1.ObjectReference{Kind: "Machine", Name: "m"}},
		{LastTimestamp: after(4), Reason: "Silent", InvolvedObject: corev1.ObjectReference{Kind: "Machine", Name: "m"}},
	}
	got := NewTimeline(root, events)
	want := Timeline{
		Cluster: "team/dev",
		Stages:  []Stage{{Name: "created", At: after(0)}, {Name: "API server available", At: after(2), Seconds: 2}},
		Entries: []Entry{
			{Time: after(0), Object: "Cluster/dev", What: "created"},
			{Time: after(1), Seconds: 1, Object: "Machine/m", What: "Failed: no server", Warning: true},
			{Time: after(2), Seconds: 2, Object: "Cluster/dev", What: anywherev1.ControlPlaneInitialized},
			{Time: after(3), Seconds: 3, Object: "Cluster/dev", What: "not Ready: Why"},
			{Time: after(4), Seconds: 4, Object: "Machine/m", What: "Silent:"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}

func TestReadinessIsAboutTheLatestSpec(t *testing.T) {
	hcp := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	const waiting = "Waiting for the controller to observe generation 3"
	for name, tt := range map[string]struct {
		conditions      []metav1.Condition
		observed        int64
		status, message string
	}{
		"no condition":  {nil, 3, "Unknown", waiting},
		"an older spec": {[]metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}, 2, "Unknown", waiting},
		"ready":         {[]metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}, 3, "True", ""},
		"several lines": {[]metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Message: "a:\n  * b\n"}}, 3, "False", "a: * b"},
	} {
		hcp.Status.Conditions = tt.conditions
		if status, message := readiness(hcp, tt.observed); status != tt.status || message != tt.message {
			t.Errorf("%s: %q, %q; want %q, %q", name, status, message, tt.status, tt.message)
		}
	}
}

func TestOnlyPausedRolloutsResume(t *testing.T) {
	p := &Plane{}
	for name, rollout := range map[string]*addonsv1.RolloutStatus{"none": nil, "another phase": {Phase: "Complete"}} {
		hcp := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		hcp.Status.Rollout = rollout
		err := p.ResumeRollout(t.Context(), hcp, time.Now())
		if want := "rollout of add-on \"web\" is not paused\nTry: drover addon status web"; err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

func TestChangesOfOutlooks(t *testing.T) {
	for _, tt := range []struct {
		outlook Outlook
		want    bool
	}{
		{Outlook{Action: plan.Unchanged}, false},
		{Outlook{Action: plan.Upgrade}, true},
		{Outlook{Action: plan.Upgrade, Error: "unknown"}, false},
	} {
		if got := tt.outlook.Changes(); got != tt.want {
			t.Errorf("%+v changes something: %t", tt.outlook, got)
		}
	}
	if got := grouped(nil); got != nil {
		t.Errorf("no clusters make groups %v", got)
	}
}

// script is a source whose reads return the given results in order.
type script struct {
	results []error
	reads   int
}

func (s *script) source() *KubeconfigSource {
	return &KubeconfigSource{
		ObjectKey: client.ObjectKey{Name: "dev"},
		read: func(context.Context) ([]byte, error) {
			err := s.results[min(s.reads, len(s.results)-1)]
			s.reads++
			if err != nil {
				return nil, err
			}
			return []byte("kubeconfig"), nil
		},
		watch: func(context.Context) <-chan struct{} {
			changes := make(chan struct{})
			close(changes)
			return changes
		},
	}
}

func TestAwaitKubeconfigReportsEachReasonOnce(t *testing.T) {
	early := func(waiting string) error { return &NotInitializedError{"dev", waiting} }
	s := &script{results: []error{early("a"), early("a"), early("b"), early("a"), nil}}
	var progress []string
	data, err := s.source().Await(t.Context(), func(waiting string) { progress = append(progress, waiting) })
	if err != nil || string(data) != "kubeconfig" {
		t.Fatalf("kubeconfig %q, error %v", data, err)
	}
	if diff := cmp.Diff([]string{"a", "b", "a"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestAwaitKubeconfigEndsWithOtherErrors(t *testing.T) {
	cause := errors.New("connection refused")
	s := &script{results: []error{&NotInitializedError{"dev", "a"}, cause}}
	if _, err := s.source().Await(t.Context(), func(string) {}); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = &script{results: []error{&NotInitializedError{"dev", "the first machine"}}}
	_, err := s.source().Await(ctx, func(string) { cancel() })
	var early *NotInitializedError
	if !errors.As(err, &early) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `cluster "dev" has no API server yet: the first machine`) {
		t.Errorf("error %v does not say what was missing", err)
	}
}

func TestTreeShowsTheStateOfTheCluster(t *testing.T) {
	failure := "invalid spec"
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dev", Generation: 2}}
	c.Spec.KubernetesVersion = "1.36"
	c.Status.ObservedGeneration = 1
	c.Status.FailureMessage = &failure
	root := Tree(c, &Objects{})
	if root.Kind != kindCluster || root.Detail != "Kubernetes 1.36" || !root.Behind || root.Failure != failure || root.Paused || len(root.Children) != 0 {
		t.Errorf("root %+v", root)
	}
	c.Status.ObservedGeneration, c.Status.Version, failure = 2, "v1.36.3", ""
	c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
	root = Tree(c, &Objects{})
	if root.Detail != "Kubernetes v1.36.3" || root.Behind || root.Failure != "" || !root.Paused {
		t.Errorf("root %+v", root)
	}
}

func TestWalkVisitsParentsFirst(t *testing.T) {
	root := &Node{Name: "a", Children: []*Node{{Name: "b", Children: []*Node{{Name: "c"}}}, {Name: "d"}}}
	var got []string
	root.Walk(func(n *Node, depth int) { got = append(got, strings.Repeat("-", depth)+n.Name) })
	if diff := cmp.Diff([]string{"a", "-b", "--c", "-d"}, got); diff != "" {
		t.Errorf("visits (-want +got):\n%s", diff)
	}
}
