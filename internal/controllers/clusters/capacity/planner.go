// Package capacity decides whether there are machines for a Cluster, for everyone who creates one:
// creators have no credentials for machines, the manager does.
//
// A new Cluster waits until there is room for all of its machines and for those of older ones. It
// is its own reservation: what it needs counts from the moment it may continue until its machines
// exist or it is deleted. Nothing else is stored. The service that provides machines counts again
// with every order, so a mistake here can't give the last machine away twice.
//
// All Clusters that use the same credentials share one request, and only Clusters that are new or
// wait cause one. The decisions are pure functions in queue.go. Start with Planner.Admit.
package capacity

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
)

const (
	// Interval is how often a waiting Cluster is tried again without an event.
	Interval = 30 * time.Second
	// fresh is how long an answer is used for all waiting Clusters, if they stay the same.
	fresh = 20 * time.Second
	// askTimeout bounds a request.
	askTimeout = 5 * time.Second
	// maxSkips bounds the requests of one decision, which needs one more per Cluster that is too
	// large.
	maxSkips = 3
)

// API answers whether machines are available.
type API interface {
	CanHave(ctx context.Context, demands []client.Demand) ([]bool, error)
}

// Planner decides which Clusters may have machines.
type Planner struct {
	// Client reads from the cache of the manager.
	Client ctrlclient.Reader
	// API returns the service of the credentials in a Secret of the system namespace.
	API   func(ctx context.Context, credentials string) (API, error)
	Clock clock.PassiveClock
	// Quotas are checked first; nil checks none.
	Quotas *Quotas

	mu    sync.Mutex
	pools map[string]*pool
}

// pool is what is known about the machines of one Secret.
type pool struct {
	mu sync.Mutex
	// granted are the Clusters that may continue and whose objects are not in the cache yet.
	granted map[types.UID]bool
	// tooLarge are the Clusters that can't be created even without others, and hold nobody up.
	tooLarge map[types.UID]bool
	// asked is the queue of the last answer, and at its time.
	asked string
	at    time.Time
}

func (p *Planner) pool(credentials string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools == nil {
		p.pools = map[string]*pool{}
	}
	if p.pools[credentials] == nil {
		p.pools[credentials] = &pool{granted: map[types.UID]bool{}, tooLarge: map[types.UID]bool{}}
	}
	return p.pools[credentials]
}

// Admit returns why a new Cluster has to wait, or nil if it may continue. If nobody can tell, it
// may: a request for machines says more than this.
func (p *Planner) Admit(ctx context.Context, config *spec.Config) (*Shortage, error) {
	credentials := demand.Credentials(config)
	pool := p.pool(credentials)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	uid := config.Cluster.UID
	if pool.granted[uid] {
		return nil, nil
	}
	if problem, err := p.overQuota(ctx, config); err != nil || problem != "" {
		return &Shortage{Quota: problem}, err
	}
	queue, err := p.queue(ctx, credentials, pool, config)
	if err != nil {
		return nil, err
	}
	if mark := queue.fingerprint(); mark != pool.asked || p.Clock.Since(pool.at) >= fresh {
		if err := p.decide(ctx, credentials, pool, queue); err != nil {
			return nil, err
		}
		pool.asked, pool.at = mark, p.Clock.Now()
	}
	if pool.granted[uid] {
		return nil, nil
	}
	return pool.shortage(queue, uid), nil
}

// overQuota returns why a new Cluster exceeds the quota of its namespace, or "". Admission rejects
// it first, unless several were created at the same time: then the oldest may continue.
func (p *Planner) overQuota(ctx context.Context, config *spec.Config) (string, error) {
	if p.Quotas == nil {
		return "", nil
	}
	state, err := p.observe(ctx)
	if err != nil {
		return "", err
	}
	return p.Quotas.Exceeded(ctx, nil, config, func(other *anywherev1.Cluster) bool {
		return Precedes(other, config.Cluster) || state.created[other.UID]
	})
}

// decide grants claims that fit.
func (p *Planner) decide(ctx context.Context, credentials string, pool *pool, queue Queue) error {
	api, err := p.API(ctx, credentials)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	clear(pool.tooLarge)
	for range maxSkips {
		rest := queue.without(func(uid types.UID) bool { return pool.tooLarge[uid] })
		available, err := ask(ctx, api, rest.demands())
		if err != nil {
			return err
		}
		granted, blocked := rest.fitting(available)
		for _, uid := range granted {
			pool.granted[uid] = true
		}
		if blocked == nil {
			break
		}
		possible, err := ask(ctx, api, demandsOf(queue.beyond(blocked)))
		if err != nil || !slices.Contains(possible, false) {
			return err
		}
		pool.tooLarge[blocked.Cluster.UID] = true
	}
	return nil
}

func ask(ctx context.Context, api API, demands []client.Demand) ([]bool, error) {
	if len(demands) == 0 {
		return nil, nil
	}
	return api.CanHave(ctx, demands)
}

func (pool *pool) shortage(queue Queue, uid types.UID) *Shortage {
	s := &Shortage{TooLarge: pool.tooLarge[uid]}
	for _, c := range queue {
		if c.Cluster.UID == uid {
			s.Needs = c.Needs
			return s
		}
		s.Behind = s.Behind || !c.Granted && !pool.granted[c.Cluster.UID] && !pool.tooLarge[c.Cluster.UID]
	}
	return s
}

// Check returns the machines that are not available in addition to everything that is claimed. For
// a new Cluster, those that wait come first.
func (p *Planner) Check(ctx context.Context, credentials string, machines []demand.Machines, isNew bool) ([]demand.Machines, error) {
	if len(machines) == 0 {
		return nil, nil
	}
	pool := p.pool(credentials)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	queue, err := p.queue(ctx, credentials, pool, nil)
	if err != nil {
		return nil, err
	}
	queue = slices.DeleteFunc(queue, func(c Claim) bool { return !c.Granted && (!isNew || pool.tooLarge[c.Cluster.UID]) })
	api, err := p.API(ctx, credentials)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	available, err := ask(ctx, api, append(queue.demands(), demandsOf(machines)...))
	if err != nil {
		return nil, err
	}
	return missing(machines, available[max(len(available)-len(machines), 0):]), nil
}

func missing(machines []demand.Machines, available []bool) []demand.Machines {
	var out []demand.Machines
	for i, m := range machines {
		if i < len(available) && !available[i] {
			out = append(out, m)
		}
	}
	return out
}

// Keeps reports whether a Cluster that waits has to wait on after an error: nobody knows whether
// there are machines now. One that does not wait yet continues.
func Keeps(ctx context.Context, c *anywherev1.Cluster, err error) bool {
	ctrl.LoggerFrom(ctx).Info("Could not check the capacity for machines", "error", fmt.Sprint(err))
	return IsWaiting(c)
}
