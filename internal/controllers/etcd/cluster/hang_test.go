package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/etcd/boot"
	"github.com/drover-dev/drover/internal/test/jumpclock"
)

// hangable is etcd with at most one member that doesn't answer, although its machine runs.
type hangable struct {
	Client

	mu sync.Mutex
	// url is where the member was when it began to hang, and id the member.
	url string
	id  uint64
}

func (h *hangable) Dial(urls []string, config *tls.Config) (Peer, error) {
	p, err := h.Client.Dial(urls, config)
	return hangablePeer{p, h}, err
}

func (h *hangable) hangs(url string, id uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if url == h.url && h.id == 0 {
		h.id = id
	}
	return h.id != 0 && h.id == id
}

type hangablePeer struct {
	Peer

	etcd *hangable
}

func (p hangablePeer) State(ctx context.Context, url string) (State, error) {
	s, err := p.Peer.State(ctx, url)
	if err == nil && p.etcd.hangs(url, s.ID) {
		return State{}, errors.New("no answer")
	}
	return s, err
}

// hang makes a member hang whose machine runs, and checks that it is replaced, but not at once.
func (w *world) hang(t *testing.T, e *etcdv1.EtcdadmCluster, members *hangable, now *jumpclock.Clock) *etcdv1.EtcdadmCluster {
	t.Helper()
	before := w.list(t)
	hung := e.Status.Members[0]
	i := slices.IndexFunc(before, func(m infrav1.PacketMachine) bool { return m.Name == hung.Name })
	e.Annotations[etcdv1.HealthCheckRetriesAnnotation] = "1"
	w.must(t, w.Update(t.Context(), e))
	members.url = boot.ClientURL(hung.Address)
	w.settle(t, func(e *etcdv1.EtcdadmCluster) error {
		if c := meta.FindStatusCondition(e.Status.Conditions, etcdv1.EtcdClusterHealthy); c == nil || c.Message != "Members are unhealthy: "+hung.Name {
			return fmt.Errorf("a member that hangs is not reported: %+v", c)
		}
		return nil
	})
	now.Pass(healthCheckUnit - time.Second)
	w.reconcile(t, w.etcds, "c")
	if all := w.list(t); len(all) != len(before) || slices.ContainsFunc(all, func(m infrav1.PacketMachine) bool { return !m.DeletionTimestamp.IsZero() }) {
		t.Errorf("a member that hangs for a moment is replaced: there are machines %v", all)
	}
	now.Pass(time.Second)
	return w.settle(t, w.ready(t, before[i]))
}
