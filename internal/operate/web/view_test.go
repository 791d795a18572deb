package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

var start = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

// world is a management plane in memory, read by one user.
type world struct {
	client.WithWatch

	t    *testing.T
	view *View

	mu sync.Mutex
	// deny says what the user may not list and watch.
	deny func(kind, namespace string) error
	// granted answers SelfSubjectAccessReviews.
	granted func(*authorizationv1.ResourceAttributes) bool
	// later is how much time has passed.
	later time.Duration
}

// IsWatchListSemanticsUnSupported makes informers list before they watch.
func (*world) IsWatchListSemanticsUnSupported() bool { return true }

// newWorld runs a view of the objects of a fleet.
func newWorld(t *testing.T, objects []client.Object, deny func(kind, namespace string) error) *world {
	t.Helper()
	w := newPlane(t, objects, deny)
	go w.view.Run(t.Context())
	select {
	case <-w.view.synced:
	case <-time.After(time.Minute):
		t.Fatal("the caches are not filled: " + w.view.trouble())
	}
	return w
}

// newPlane is a plane with the objects of a fleet, which nobody watches yet.
func newPlane(t *testing.T, objects []client.Object, deny func(kind, namespace string) error) *world {
	t.Helper()
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, deny: deny}
	w.WithWatch = fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := w.denied(list, options); err != nil {
				return err
			}
			defer fleettest.Fleet{Now: start}.AddManagedFields(list)
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: key.Namespace, Name: key.Name},
				}}
				if err := w.Create(ctx, review); err != nil || !review.Status.Allowed {
					return forbidden("secrets")
				}
			}
			return c.Get(ctx, key, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if applied := (&client.PatchOptions{}).ApplyOptions(options); len(applied.DryRun) == 0 {
				return c.Patch(ctx, o, patch, options...)
			}
			// The client in memory returns nothing from a dry run, so another one does it.
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			return fake.NewClientBuilder().WithScheme(kinds).WithObjects(o.DeepCopyObject().(client.Object)).Build().Patch(ctx, o, patch)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
				w.mu.Lock()
				defer w.mu.Unlock()
				review.Status.Allowed = w.granted != nil && w.granted(review.Spec.ResourceAttributes)
				return nil
			}
			return c.Create(ctx, o, options...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			if err := w.denied(list, options); err != nil {
				return nil, err
			}
			return c.Watch(ctx, list, options...)
		},
	}).Build()
	w.view = NewView(&inspect.Plane{Client: w, Host: "https://plane", Own: "team-web"})
	w.view.now = w.now
	return w
}

// now is the time of the test.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return start.Add(w.later)
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later += d
}

// grant lets the user do everything.
func (w *world) grant() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted = func(*authorizationv1.ResourceAttributes) bool { return true }
}

func (w *world) denied(list client.ObjectList, options []client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deny == nil {
		return nil
	}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", list), "*")
	return w.deny(kind, o.Namespace)
}

// allow changes what the user may read.
func (w *world) allow(deny func(kind, namespace string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deny = deny
}

// rows returns the rows that a new page gets.
func (w *world) rows() map[string]Row {
	w.t.Helper()
	w.view.hub.mu.Lock()
	defer w.view.hub.mu.Unlock()
	var all []Row
	if err := json.Unmarshal(w.view.hub.snapshot(), &all); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]Row{}
	for _, r := range all {
		out[r.ID] = r
	}
	return out
}

func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waiting until %s; rows: %v", what, w.rows())
		}
	}
}

func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("not allowed"))
}

// onlyWeb is a creator in namespace team-web.
func onlyWeb(kind, namespace string) error {
	if namespace == "team-web" && !strings.HasPrefix(kind, "v1beta") {
		return nil
	}
	return forbidden(kind)
}

func fleet(state func(int) fleettest.State) fleettest.Fleet {
	return fleettest.Fleet{Now: start, StateOf: state}
}

func TestRowsSayWhatClustersWaitFor(t *testing.T) {
	w := newWorld(t, fleet(fleettest.OnFire).Objects(12), nil)
	rows := w.rows()
	if len(rows) != 12 {
		t.Fatalf("%d rows, want one for each of 12 clusters", len(rows))
	}
	for i, want := range map[int]struct {
		health         Health
		waiting, cause string
	}{
		0: {Ready, "", ""},
		1: {Failing, "no server of plan c3.medium.x86 is free in metro fr", "PacketMachine fra-batch-01-md-0-"},
		4: {Failing, "kubeadm join failed: the registry of the machine's images does not answer", "PacketMachine nrt-ml-01-md-0-"},
		6: {Progressing, "Installing the operating system", "PacketMachine ams-batch-02-"},
		9: {Paused, "reconciliation is paused", "Cluster sjc-ml-02"},
	} {
		row := rows["drover/"+fleettest.Namespace(i)+"/"+fleettest.Name(i)]
		if row.Health != want.health || row.Waiting != want.waiting || !strings.HasPrefix(row.Cause, want.cause) {
			t.Errorf("cluster %d is %s, waiting for %q of %q; want %+v", i, row.Health, row.Waiting, row.Cause, want)
		}
	}
	ready := rows["drover/team-web/ams-web-01"]
	if ready.Version != "v1.36.3" || ready.ControlPlane != (Count{Ready: 3, Total: 3}) || ready.AddOns != (Count{Ready: 3, Total: 3}) || ready.Git != "fleet" || ready.Metro != "am" {
		t.Errorf("got %+v", ready)
	}
	if unbooted := rows["drover/team-ml/nrt-ml-01"]; unbooted.AddOns != (Count{Ready: 2, Total: 3, Failed: 1}) {
		t.Errorf("add-ons %+v", unbooted.AddOns)
	}
}

func TestOneChangeSendsOneRow(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(5), nil)
	p, _ := mustJoin(t, w.view.hub, "")
	m := &infrav1.PacketMachine{}
	all := &infrav1.PacketMachineList{}
	if err := w.List(t.Context(), all, client.MatchingLabels{"cluster.x-k8s.io/cluster-name": "ams-web-01"}); err != nil || len(all.Items) == 0 {
		t.Fatal(err)
	}
	*m = all.Items[0]
	apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: infrav1.InstanceReady, Status: metav1.ConditionFalse, Reason: infrav1.InstanceStoppedReason, Message: "off"})
	if err := w.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	e := <-p.events
	for e.kind != "row" {
		e = <-p.events
	}
	if !strings.Contains(string(e.data), `"id":"drover/team-web/ams-web-01"`) {
		t.Errorf("got %s", e.data)
	}
	time.Sleep(3 * gathering)
	if more := told(p); strings.Contains(more, "row") {
		t.Errorf("the page also got %s", more)
	}
}

func TestCreatorSeesOnlyItsNamespace(t *testing.T) {
	w := newWorld(t, fleet(fleettest.OnFire).Objects(20), onlyWeb)
	rows := w.rows()
	for id := range rows {
		if !strings.HasPrefix(id, "drover/team-web/") {
			t.Errorf("the creator sees %s", id)
		}
	}
	if len(rows) != 4 {
		t.Errorf("the creator sees %d clusters, want its 4", len(rows))
	}
	p, _ := mustJoin(t, w.view.hub, "")
	for i := range 20 {
		c := &anywherev1.Cluster{}
		key := client.ObjectKey{Namespace: fleettest.Namespace(i), Name: fleettest.Name(i)}
		if err := w.Get(t.Context(), key, c); err != nil {
			t.Fatal(err)
		}
		c.Labels["changed"] = "true"
		if err := w.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	w.await("the creator's clusters have changed", func() bool {
		got += told(p)
		return strings.Count(got, "row") >= 4
	})
	for _, other := range []string{"team-batch", "team-edge", "team-ci", "team-ml"} {
		if strings.Contains(got, other) {
			t.Errorf("the stream leaks %s: %s", other, got)
		}
	}
	for _, path := range []string{"drover/team-batch/fra-batch-01", "capi/eksa-system/fra-batch-01"} {
		parts := strings.Split(path, "/")
		if _, err := w.view.detail(t.Context(), Key{parts[0], parts[1], parts[2]}); err == nil {
			t.Errorf("the creator reads %s", path)
		}
	}
}

func TestLostPermissionRemovesRows(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(3), nil)
	p, _ := mustJoin(t, w.view.hub, "")
	deny := func() {
		w.view.denied(w.view.stores[kindClusters], "", forbidden("clusters"))
		w.view.denied(w.view.stores[kindCAPI], "", forbidden("clusters"))
	}
	deny()
	time.Sleep(3 * gathering)
	if len(w.rows()) != 3 {
		t.Fatal("a plane that has just started, and denies everything, empties the page")
	}
	w.pass(denialGrace)
	deny()
	w.await("no row is left", func() bool { return len(w.rows()) == 0 })
	if got := told(p); strings.Count(got, "gone") != 3 || strings.Contains(got, "expired") {
		t.Errorf("the page got %s, want 3 rows gone", got)
	}
	w.view.reached(w.view.stores[kindClusters], "")
	w.await("the rows are back", func() bool { return len(w.rows()) == 3 })
}

func TestExpiredCredentialsEmptyThePage(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(3), nil)
	p, _ := mustJoin(t, w.view.hub, "")
	expire(w, w.view)
	w.await("no row is left", func() bool { return len(w.rows()) == 0 })
	if got := told(p); !strings.Contains(got, "expired") {
		t.Errorf("the page got %s", got)
	}
}

// expire lets the plane reject the credentials of the user for good.
func expire(w *world, v *View) {
	for range 2 {
		for _, s := range v.stores {
			v.denied(s, "", apierrors.NewUnauthorized("expired"))
		}
		w.pass(denialGrace)
	}
}

func TestProblemsOfThePlaneComeAndGo(t *testing.T) {
	w := newPlane(t, nil, func(string, string) error { return errors.New("connection refused") })
	go w.view.Run(t.Context())
	p, _ := mustJoin(t, w.view.hub, "")
	if e := <-p.events; e.kind != "problem" || !strings.Contains(string(e.data), "connection refused") {
		t.Errorf("the page got %s %s", e.kind, e.data)
	}
	w.allow(func(kind, _ string) error { return forbidden(kind) })
	if e := <-p.events; e.kind != "problem" || !strings.Contains(string(e.data), "ask for the role") {
		t.Errorf("the page got %s %s", e.kind, e.data)
	}
	w.allow(nil)
	if e := <-p.events; e.kind != "problem" || string(e.data) != `""` {
		t.Errorf("the page got %s %s, want that there is no problem", e.kind, e.data)
	}
}

func TestReadableAsksForNamespaces(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.allow(onlyWeb)
	for i, want := range map[int][]string{0: {"team-web"}, 1: nil} {
		got, err := readable(t.Context(), w, kinds()[i], []string{"team-web", "eksa-system"})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", kinds()[i].name, got, err, want)
		}
	}
	w.allow(func(string, string) error { return errors.New("connection refused") })
	if _, err := readable(t.Context(), w, kinds()[0], nil); err == nil {
		t.Error("an unreachable plane counts as one without permissions")
	}
}

func TestDetailHasTreeAndCause(t *testing.T) {
	w := newWorld(t, fleet(fleettest.OnFire).Objects(2), nil)
	d, err := w.view.detail(t.Context(), Key{drover, "team-batch", "fra-batch-01"})
	if err != nil {
		t.Fatal(err)
	}
	if d.Why.Ready || !strings.Contains(d.Why.Next, "free a server") || len(d.Tree.Children) == 0 || len(d.AddOns) != 3 {
		t.Errorf("got %+v", d)
	}
	if d.Operation.Name != inspect.Change || len(d.Operation.Stages) != 2 || d.Operation.Stages[1].Seconds != 120 {
		t.Errorf("the last change is %+v, want the replacement of a machine in two minutes", d.Operation)
	}
	data, err := json.Marshal(d.Tree)
	if err != nil || !strings.Contains(string(data), `"unmet":["InstanceReady"]`) || !strings.Contains(string(data), `"ready":true`) || !strings.Contains(string(data), `"remedy":"free a server`) {
		t.Errorf("tree %s, %v", data, err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	gr := schema.GroupResource{Group: "anywhere.eks.amazonaws.com", Resource: "clusters"}
	for _, tt := range []struct {
		err  error
		code int
		try  string
	}{
		{apierrors.NewForbidden(gr, "dev", errors.New("no")), http.StatusForbidden, "role"},
		{apierrors.NewUnauthorized("expired"), http.StatusUnauthorized, "Renew"},
		{apierrors.NewNotFound(gr, "dev"), http.StatusNotFound, "fleet"},
		{apierrors.NewConflict(gr, "dev", errors.New("x")), http.StatusConflict, "try again"},
		{apierrors.NewGenericServerResponse(422, "patch", gr, "dev", "the test failed", 0, false), http.StatusConflict, "try again"},
		{&inspect.NotInitializedError{Cluster: "dev", Waiting: "x"}, http.StatusConflict, "Wait"},
		{&usageError{"a", "b"}, http.StatusUnprocessableEntity, "b"},
		{errors.New("connection refused"), http.StatusBadGateway, "drover status"},
	} {
		w := &recorder{header: http.Header{}}
		report(w, tt.err)
		if w.code != tt.code || !strings.Contains(w.body, tt.try) {
			t.Errorf("%v: status %d, %s; want %d and %q", tt.err, w.code, w.body, tt.code, tt.try)
		}
	}
}

type recorder struct {
	header http.Header
	code   int
	body   string
}

func (r *recorder) Header() http.Header  { return r.header }
func (r *recorder) WriteHeader(code int) { r.code = code }
func (r *recorder) Write(data []byte) (int, error) {
	r.body += string(data)
	return len(data), nil
}
