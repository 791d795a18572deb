package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// A leader that is frozen, by a signal or a busy hypervisor, doesn't notice that another one takes
// over: when it thaws, it continues in the middle of a reconcile, before the election learns that
// the lease is gone. Upstream's MachineSets would then create a Machine whose parts the new leader
// has just deleted as orphans, and nobody repairs it.
//
// The fence sits in front of all clients of the manager. It sees the lease being renewed, and holds
// the writes of reconciles back when the last renewal is older than the leader's own deadline,
// which ends before others may take over. They continue when the lease is renewed, or fail when the
// manager stops because it lost the lease.

// fence knows until when the manager is the leader.
type fence struct {
	// leases is the path of the manager's lease, or of all in its namespace, where it is created.
	leases string
	// term is how long a renewal is valid.
	term time.Duration
	now  func() time.Time

	mu      sync.Mutex
	renewed time.Time
	// next is closed with the next renewal.
	next chan struct{}
}

// newFence returns nil if nobody is elected: then the manager is alone.
func newFence(o ctrl.Options) *fence {
	if !o.LeaderElection || o.RenewDeadline == nil {
		return nil
	}
	return &fence{
		leases: "/apis/coordination.k8s.io/v1/namespaces/" + o.LeaderElectionNamespace + "/leases",
		term:   *o.RenewDeadline, now: time.Now, next: make(chan struct{}),
	}
}

// transport holds back what reconciles write while the lease may have ended.
func (f *fence) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return next.RoundTrip(r)
		}
		if strings.HasPrefix(r.URL.Path, f.leases) {
			return f.renew(next, r)
		}
		if _, ok := originOf(r.Context()); ok {
			if err := f.await(r.Context()); err != nil {
				closeBody(r)
				return nil, err
			}
		}
		return next.RoundTrip(r)
	})
}

// renew sends a change of the lease. It is valid from when it is sent: others count from when they
// see it, which is later. A leader whose lease may have ended doesn't give it up: upstream's
// election would give up that of the next leader.
func (f *fence) renew(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if !holds(r) {
		led, _ := f.leads()
		f.set(time.Time{})
		if !led {
			closeBody(r)
			return nil, errLost
		}
		return next.RoundTrip(r)
	}
	sent := f.now()
	resp, err := next.RoundTrip(r)
	if err == nil && resp.StatusCode < http.StatusMultipleChoices {
		f.set(sent)
	}
	return resp, err
}

// errLost is the error of a release that comes too late.
var errLost = errors.New("the lease may belong to another leader")

// holds reports whether a request takes or keeps the lease. Clients send it as JSON or Protobuf.
func holds(r *http.Request) bool {
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return false
	}
	kind := coordinationv1.SchemeGroupVersion.WithKind("Lease")
	o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, &kind, nil)
	lease, ok := o.(*coordinationv1.Lease)
	return err == nil && ok && ptr.Deref(lease.Spec.HolderIdentity, "") != ""
}

func (f *fence) set(renewed time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = renewed
	close(f.next)
	f.next = make(chan struct{})
}

// await waits until the manager is the leader.
func (f *fence) await(ctx context.Context) error {
	for {
		leads, next := f.leads()
		if leads {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the lease of the leader to be renewed: %w", context.Cause(ctx))
		case <-next:
		}
	}
}

// leads reports whether the last renewal is recent by each of two clocks: the monotonic one stands
// still while a computer sleeps, and the other one may be set.
func (f *fence) leads() (bool, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	recent := now.Sub(f.renewed) < f.term && now.Round(0).Sub(f.renewed.Round(0)) < f.term
	return recent, f.next
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
