package cluster

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/etcd/boot"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
)

const (
	// healthCheckUnit is the unit of the annotation with the patience, defaultRetries its default.
	healthCheckUnit = 30 * time.Second
	defaultRetries  = 20
)

// observe gathers what plan.Next needs.
func (c *Controller) observe(ctx context.Context, s *scope) error {
	w := &plan.World{Replicas: s.replicas(), Initialized: s.initialized(), Holders: map[int]string{}}
	s.world = w
	for slot := range s.addresses {
		if slot >= 0 {
			w.Reserved = append(w.Reserved, slot)
		}
	}
	slices.Sort(w.Reserved)
	s.observeHolders(w)
	if err := s.observeMembers(ctx, w); err != nil {
		return err
	}
	for i := range s.machines {
		w.Machines = append(w.Machines, s.observeMachine(&s.machines[i]))
	}
	c.measure(s, w)
	return c.markInitialized(ctx, s)
}

// observeHolders finds which machines have the addresses.
func (s *scope) observeHolders(w *plan.World) {
	for at, ip := range s.addresses {
		for _, a := range ip.Assignments {
			i := slices.IndexFunc(s.machines, func(m infrav1.PacketMachine) bool { return deviceOf(&m) != "" && deviceOf(&m) == a.DeviceID() })
			if i >= 0 {
				w.Holders[at] = s.machines[i].Name
			}
		}
	}
}

// observeMembers asks etcd for its members, and each of them for its state. Etcd that does not
// answer has no quorum, as far as anyone can tell from here.
func (s *scope) observeMembers(ctx context.Context, w *plan.World) error {
	if len(w.Holders) == 0 {
		return nil // no member can answer yet
	}
	if err := s.dial(w); err != nil {
		return err
	}
	found, err := s.peer.Members(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Etcd does not answer", "error", err.Error())
		return nil
	}
	w.Quorum = true
	for _, f := range found {
		w.Members = append(w.Members, plan.Member{ID: f.ID, Name: f.Name, At: s.addresses.slot(host(f.PeerURL)), Learner: f.Learner})
	}
	s.observeHealth(ctx, w)
	return nil
}

// dial connects to all addresses that machines have.
func (s *scope) dial(w *plan.World) error {
	config, err := s.tls()
	if err != nil {
		return err
	}
	var urls []string
	for at := range w.Holders {
		urls = append(urls, boot.ClientURL(s.addresses[at].Address))
	}
	slices.Sort(urls)
	s.peer, err = s.controller.Etcd.Dial(urls, config)
	return err
}

// disconnect ends what dial began.
func (s *scope) disconnect() {
	if s.peer != nil {
		_ = s.peer.Close()
	}
}

// observeHealth asks all members at once. A member is healthy if it answers at its address, and
// knows a leader.
func (s *scope) observeHealth(ctx context.Context, w *plan.World) {
	var group sync.WaitGroup
	leaders := make([]uint64, len(w.Members))
	for i := range w.Members {
		m := &w.Members[i]
		ip := s.addresses[m.At]
		if ip == nil {
			continue
		}
		group.Go(func() {
			state, err := s.peer.State(ctx, boot.ClientURL(ip.Address))
			m.Healthy = err == nil && state.ID == m.ID && state.Leader != 0 && state.Problem == ""
			leaders[i] = state.Leader
		})
	}
	group.Wait()
	for i := range w.Members {
		w.Members[i].Leader = slices.Contains(leaders, w.Members[i].ID)
	}
}

func host(peer string) string {
	u, err := url.Parse(peer)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// observeMachine returns what is known of a machine.
func (s *scope) observeMachine(m *infrav1.PacketMachine) plan.Machine {
	slot, err := strconv.Atoi(m.Annotations[etcdv1.SlotAnnotation])
	if err != nil {
		slot = plan.Unknown
	}
	return plan.Machine{
		Name: m.Name, Slot: slot, At: s.addresses.slot(m.Annotations[etcdv1.AddressAnnotation]),
		Active:   deviceOf(m) != "" && ptr.Deref(m.Status.InstanceStatus, "") == infrav1.InstanceActive,
		Deleting: !m.DeletionTimestamp.IsZero(),
		Failed:   m.Status.FailureReason != nil,
		Outdated: m.Annotations[etcdv1.ConfigAnnotation] != s.config || s.due(m) || s.precedesRenewal(m),
	}
}

// due reports whether the certificate of a member must be replaced.
func (s *scope) due(m *infrav1.PacketMachine) bool {
	at, err := time.Parse(time.RFC3339, m.Annotations[etcdv1.ExpiresAnnotation])
	return err == nil && s.controller.Clock.Now().After(at)
}

// measure finds the members that are unhealthy for too long. A restart loses what it knows and
// starts the time again: replacing a member late is better than replacing it early.
func (c *Controller) measure(s *scope, w *plan.World) {
	patience, enabled := s.patience()
	now := c.Clock.Now()
	c.unhealthy.Update(s.Key(), func(since *map[string]time.Time) {
		next := map[string]time.Time{}
		for i := range w.Machines {
			m := &w.Machines[i]
			if !w.Quorum || healthyOn(w, m.Name) {
				continue
			}
			next[m.Name] = now
			if first, known := (*since)[m.Name]; known {
				next[m.Name] = first
			}
			m.Overdue = enabled && now.Sub(next[m.Name]) >= patience
		}
		*since = next
	})
}

func healthyOn(w *plan.World, machine string) bool {
	return slices.ContainsFunc(w.Members, func(m plan.Member) bool { return m.Name == machine && m.Healthy })
}

// patience is for how long a member may be unhealthy, and whether it is replaced then.
func (s *scope) patience() (time.Duration, bool) {
	n, err := strconv.Atoi(s.etcd.Annotations[etcdv1.HealthCheckRetriesAnnotation])
	if err != nil || n < 0 {
		n = defaultRetries
	}
	return time.Duration(n) * healthCheckUnit, n > 0
}

// markInitialized remembers that etcd has formed: from then on it must never be bootstrapped.
func (c *Controller) markInitialized(ctx context.Context, s *scope) error {
	if s.initialized() || !s.world.Quorum {
		return nil
	}
	if s.etcd.Annotations == nil {
		s.etcd.Annotations = map[string]string{}
	}
	s.etcd.Annotations[etcdv1.InitializedAnnotation] = "true"
	s.world.Initialized = true
	return s.Save(ctx)
}
