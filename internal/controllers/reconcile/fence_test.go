package reconcile

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/drover-system/leases"
	held      = `{"spec":{"holderIdentity":"me"}}`
	released  = `{"spec":{"holderIdentity":""}}`
)

// fenced is a fence with a clock of its own, and what reached the API server behind it.
type fenced struct {
	*fence

	clock   time.Time
	status  int
	arrived []string
}

func newFenced() *fenced {
	f := &fenced{clock: time.Now(), status: http.StatusOK}
	f.fence = newFence(ctrl.Options{LeaderElection: true, LeaderElectionNamespace: "drover-system", RenewDeadline: ptr.To(10 * time.Second)})
	f.now = func() time.Time { return f.clock }
	return f
}

// send sends a request; reconciles report their origin by the logger in ctx.
func (f *fenced) send(ctx context.Context, t *testing.T, method, path, body string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "https://server"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		f.arrived = append(f.arrived, r.Method+" "+r.URL.Path)
		return &http.Response{StatusCode: f.status, Body: io.NopCloser(strings.NewReader(body))}, nil
	})).RoundTrip(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// inReconcile returns a context that has ended, so that a write which is held back fails at once.
func inReconcile(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return withOrigin(ctx)
}

func withOrigin(ctx context.Context) context.Context {
	guard := &Guard{name: "machine", log: funcr.New(func(_, _ string) {}, funcr.Options{}), writes: newLedger()}
	return ctrl.LoggerInto(ctx, guard.logger(&one))
}

func TestFenceHoldsBackWritesWithoutLease(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*fenced) error
		want bool
	}{
		{"never renewed", func(*fenced) error { return nil }, false},
		{"just acquired", func(f *fenced) error { return f.send(t.Context(), t, http.MethodPost, leasePath, held) }, true},
		{"just renewed", func(f *fenced) error {
			return f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held)
		}, true},
		{"renewed before the deadline", func(f *fenced) error {
			err := f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held)
			f.clock = f.clock.Add(9 * time.Second)
			return err
		}, true},
		{"frozen until after the deadline", func(f *fenced) error {
			err := f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held)
			f.clock = f.clock.Add(11 * time.Second)
			return err
		}, false},
		{"asleep: only the wall clock went on", func(f *fenced) error {
			err := f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held)
			f.clock = f.clock.Round(0).Add(11 * time.Second)
			return err
		}, false},
		{"another one has taken over", func(f *fenced) error {
			f.status = http.StatusConflict
			err := f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held)
			f.status = http.StatusOK
			return err
		}, false},
		{"released", func(f *fenced) error {
			return errors.Join(
				f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held),
				f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", released))
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFenced()
			if err := tc.do(f); err != nil {
				t.Fatal(err)
			}
			f.arrived = nil
			err := f.send(inReconcile(t), t, http.MethodPost, machinesPath, sent)
			if got := err == nil && len(f.arrived) == 1; got != tc.want {
				t.Errorf("the write was sent: %v, want %v (%v)", got, tc.want, err)
			}
			if !tc.want && !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want that of the reconcile", err)
			}
		})
	}
}

// TestFenceUnderstandsTheElection renews and releases with the client of the election, which sends
// Protobuf.
func TestFenceUnderstandsTheElection(t *testing.T) {
	for name, tc := range map[string]struct {
		holder string
		frozen time.Duration
		leads  bool
		sends  int
	}{
		"a renewal":                    {"me", 0, true, 1},
		"a release":                    {"", 0, false, 1},
		"a release by a former leader": {"", 11 * time.Second, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFenced()
			if err := f.send(t.Context(), t, http.MethodPut, leasePath+"/drover-manager", held); err != nil {
				t.Fatal(err)
			}
			f.clock, f.arrived = f.clock.Add(tc.frozen), nil
			client, err := coordinationclient.NewForConfig(&rest.Config{Host: "https://server", Transport: f.transport(roundTripper(func(r *http.Request) (*http.Response, error) {
				f.arrived = append(f.arrived, r.Header.Get("Content-Type"))
				body, err := r.GetBody()
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": r.Header["Content-Type"]}, Body: body}, err
			}))})
			if err != nil {
				t.Fatal(err)
			}
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &tc.holder}}
			lease.Name = "drover-manager"
			_, err = client.Leases("drover-system").Update(t.Context(), lease, metav1.UpdateOptions{})
			if (err == nil) != (tc.sends > 0) || len(f.arrived) != tc.sends {
				t.Errorf("sent %q (%v), want %d requests", f.arrived, err, tc.sends)
			}
			if leads, _ := f.leads(); leads != tc.leads {
				t.Errorf("leads: %t, want %t", leads, tc.leads)
			}
		})
	}
}

func TestFenceLetsReadsAndWebhooksPass(t *testing.T) {
	f := newFenced()
	if err := f.send(inReconcile(t), t, http.MethodGet, machinesPath, ""); err != nil {
		t.Errorf("a read was held back: %v", err)
	}
	if err := f.send(t.Context(), t, http.MethodPatch, machinesPath+"/m", "{}"); err != nil {
		t.Errorf("a write that belongs to no reconcile was held back: %v", err)
	}
}

func TestHeldBackWriteContinuesWithTheNextRenewal(t *testing.T) {
	f := newFenced()
	done := make(chan error, 1)
	go func() { done <- f.await(t.Context()) }()
	select {
	case err := <-done:
		t.Fatalf("not held back: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	f.set(f.clock)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestManagerWithoutElectionHasNoFence(t *testing.T) {
	if newFence(ctrl.Options{RenewDeadline: ptr.To(time.Second)}) != nil {
		t.Error("got a fence")
	}
}
