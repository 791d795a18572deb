package metal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

const (
	// inspectors is the number of servers that are inspected at once.
	inspectors = 8
	// inspectTimeout bounds the inspection of one server, resetTimeout the restoration.
	inspectTimeout = time.Minute
	resetTimeout   = 5 * time.Minute
)

// inspections inspects servers that are new or have changed, each once. Servers that nobody touches
// are not connected to.
type inspections struct {
	*Server
	queue   workqueue.TypedInterface[string]
	running sync.WaitGroup
	cancel  context.CancelFunc
}

func newInspections(s *Server) *inspections {
	return &inspections{Server: s, queue: workqueue.NewTyped[string](), cancel: func() {}}
}

// start enqueues the servers that wait for an inspection since the last process ended.
func (i *inspections) start(ctx context.Context) error {
	if _, ok := i.driver.(driver.Inspector); !ok {
		return nil
	}
	err := i.store.View(func(tx *store.Tx) error {
		return tx.Servers().Each(func(s *inventory.Server) error {
			if s.State == inventory.Discovered && len(s.Problems) == 0 {
				i.queue.Add(s.ID)
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("reading the inventory: %w", err)
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.cancel = cancel
	for range inspectors {
		i.running.Go(func() {
			for i.next(work) {
			}
		})
	}
	return nil
}

func (i *inspections) stop() {
	i.cancel()
	i.queue.ShutDown()
	i.running.Wait()
}

func (i *inspections) next(ctx context.Context) bool {
	id, shutdown := i.queue.Get()
	if shutdown {
		return false
	}
	defer i.queue.Done(id)
	if _, err := i.inspect(ctx, id); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
		i.log.Error("recording an inspection failed", "server", id, "error", err)
	}
	return true
}

// inspect inspects a server and records the result. What a server lacks is part of the result.
func (i *inspections) inspect(ctx context.Context, id string) (*inventory.Server, error) {
	defer i.store.Lock("server/" + id)()
	return i.inspectLocked(ctx, id)
}

func (i *inspections) inspectLocked(ctx context.Context, id string) (*inventory.Server, error) {
	server, target, err := i.target(id)
	if err != nil {
		return nil, err
	}
	facts, problems := driver.Facts{}, []driver.Problem(nil)
	if server.SSH == nil {
		problems = []driver.Problem{{Check: "access", Message: "the server has no SSH access", Remedy: "set it with `drover server edit " + server.Name + " --ssh USER@HOST`"}}
	} else {
		facts, problems, err = i.ask(ctx, *target)
	}
	if err != nil {
		return nil, err
	}
	return i.changeServer(id, func(s *inventory.Server) error {
		s.RecordInspection(facts, problems, i.now())
		if s.State == inventory.Ready && s.EffectivePlan() == "" {
			s.RecordInspection(facts, []driver.Problem{{
				Check: "plan", Message: "the server is smaller than every plan", Remedy: "a node needs 2 CPUs and 2 GiB of memory; name a plan with `drover server edit " + s.Name + " --plan PLAN` to use it anyway",
			}}, i.now())
		}
		return nil
	})
}

// ask connects to a server. An unreachable server has a problem like any other.
func (i *inspections) ask(ctx context.Context, target driver.Server) (driver.Facts, []driver.Problem, error) {
	bounded, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	facts, problems, err := i.driver.(driver.Inspector).Inspect(bounded, target)
	if ctx.Err() != nil {
		return facts, nil, ctx.Err() // Metal stops; the next process inspects again.
	}
	if err != nil {
		problems = append(problems, driver.Problem{Check: "inspect", Message: err.Error(), Remedy: "fix that and run `drover server check " + target.Name + "`"})
	}
	return facts, problems, nil
}

// target returns a server and how to reach it.
func (i *inspections) target(id string) (server *inventory.Server, target *driver.Server, err error) {
	err = i.store.View(func(tx *store.Tx) (err error) {
		if server, err = tx.Servers().Get(id); err != nil {
			return err
		}
		target, err = i.driverServer(server)
		return err
	})
	return server, target, err
}

// reset restores a server that no device has, and inspects it again. Until both have succeeded, it
// is given to no machine.
func (i *inspections) reset(ctx context.Context, id string) (*inventory.Server, error) {
	defer i.store.Lock("server/" + id)()
	before, err := i.changeServer(id, func(s *inventory.Server) error {
		if s.State == inventory.Failed {
			return s.BeginReset()
		}
		return s.Reset(i.now())
	})
	if err != nil {
		return nil, err
	}
	if before.SSH == nil {
		return nil, request.Unprocessable("the server has no SSH access")
	}
	_, target, err := i.target(id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	if err := i.driver.(driver.Inspector).Clean(ctx, *target); err != nil {
		problem := driver.Problem{Check: "clean", Message: err.Error(), Remedy: "fix that and run `drover server reset " + before.Name + "` again"}
		_, failed := i.changeServer(id, func(s *inventory.Server) error {
			s.Fail(problem, i.now())
			return nil
		})
		return nil, errors.Join(request.Unprocessable("The server could not be restored: "+err.Error()), failed)
	}
	if _, err := i.changeServer(id, func(s *inventory.Server) error { return s.Reset(i.now()) }); err != nil {
		return nil, err
	}
	return i.inspectLocked(ctx, id)
}

// changeServer reads a server, applies fn and stores the result.
func (s *Server) changeServer(id string, fn func(*inventory.Server) error) (server *inventory.Server, err error) {
	err = s.store.Update(func(tx *store.Tx) (err error) {
		if server, err = tx.Servers().Get(id); err != nil {
			return err
		}
		if err := fn(server); err != nil {
			return err
		}
		return s.putServer(tx, server)
	})
	return server, err
}
