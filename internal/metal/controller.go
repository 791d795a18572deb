package metal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/util/workqueue"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/store"
)

const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

// controller drives the driver toward the recorded state. It works on several devices concurrently,
// and on each device one step at a time.
type controller struct {
	*Server
	workers int
	queue   workqueue.TypedRateLimitingInterface[string]
	running sync.WaitGroup
	cancel  context.CancelFunc
	// upgrades are those in progress.
	upgrades upgrades
}

func newController(s *Server, workers int) *controller {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryLast)
	return &controller{Server: s, workers: workers, queue: workqueue.NewTypedRateLimitingQueue(limiter), cancel: func() {}}
}

// start enqueues all devices, and all machines of the driver that have no device.
func (c *controller) start(ctx context.Context) error {
	known, err := c.driver.Known(ctx)
	if err != nil {
		return fmt.Errorf("listing the driver's machines: %w", err)
	}
	for _, id := range append(c.store.Devices().All(store.Query{}), known...) {
		c.queue.Add(id)
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.upgrades.open(work)
	for range c.workers {
		c.running.Go(func() {
			for c.next(work) {
			}
		})
	}
	return nil
}

func (c *controller) stop() {
	c.cancel()
	c.queue.ShutDown()
	c.running.Wait()
	c.upgrades.running.Wait()
}

// enqueue enqueues a device for reconciliation.
func (c *controller) enqueue(id string) { c.queue.Add(id) }

func (c *controller) next(ctx context.Context) bool {
	id, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(id)
	wait, err := c.reconcile(ctx, id)
	switch {
	case err != nil && ctx.Err() == nil:
		c.log.Warn("a device is not as wanted yet", "device", id, "error", err)
		c.recordDriverError(id, err)
		c.queue.AddRateLimited(id)
	case err == nil:
		c.queue.Forget(id)
		if wait > 0 {
			c.queue.AddAfter(id, wait)
		}
	}
	return true
}

// reconcile performs the next step for a device.
func (c *controller) reconcile(ctx context.Context, id string) (time.Duration, error) {
	l, err := c.load(id)
	if err != nil {
		return 0, err
	}
	d := l.device
	next := choose(d, c.now())
	switch next.step {
	case stepRemove:
		return 0, c.remove(ctx, id)
	case stepTerminate:
		return 0, c.terminate(id)
	case stepFail:
		return 0, c.fail(id)
	case stepReinstall:
		return next.wait, c.reinstall(ctx, machineOf(l))
	case stepEnsure:
		if err := c.ensure(ctx, d, machineOf(l), next.power); err != nil {
			return 0, err
		}
		if next.upgrade != "" {
			c.upgrades.start(c, machineOf(l), next.upgrade)
		}
		return next.wait, c.tidyUserdata(d, l.userdata)
	default:
		return next.wait, nil
	}
}

// loaded is what the driver needs to know about a device, which is nil if it does not exist.
type loaded struct {
	device   *store.Device
	userdata []byte
	keys     []string
	server   *driver.Server
}

func (c *controller) load(id string) (l loaded, err error) {
	err = c.store.View(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		l.device, l.userdata = d, tx.Userdata(id)
		for _, key := range d.SSHKeyIDs {
			if k, err := tx.SSHKeys().Get(key); err == nil {
				l.keys = append(l.keys, strings.TrimSpace(k.Key))
			}
		}
		l.server, err = c.driverServerOf(tx, d)
		return err
	})
	return l, err
}

func (c *controller) ensure(ctx context.Context, d *store.Device, m driver.Machine, power driver.Power) error {
	if d.State == StateQueued {
		_ = c.Report(d.ID, driver.Event{Phase: driver.Provisioning, Type: stepName(1)})
	}
	if err := c.driver.Ensure(ctx, m, power); err != nil {
		return fmt.Errorf("provisioning device %q: %w", d.ID, err)
	}
	if err := c.driver.SetAddresses(ctx, d.ID, elastic(d)); err != nil {
		return fmt.Errorf("setting the elastic addresses of device %q: %w", d.ID, err)
	}
	if d.Trouble == "" {
		return nil
	}
	return c.change(d.ID, func(_ *store.Tx, d *store.Device) error {
		d.Trouble = ""
		return nil
	})
}

func (c *controller) reinstall(ctx context.Context, m driver.Machine) error {
	if err := c.driver.Reinstall(ctx, m); err != nil {
		return fmt.Errorf("reinstalling device %q: %w", m.ID, err)
	}
	defer c.enqueue(m.ID)
	return c.change(m.ID, func(_ *store.Tx, d *store.Device) error {
		d.Reinstall = false
		return nil
	})
}

// remove removes the machine. Only then does it delete the device and release its addresses.
func (c *controller) remove(ctx context.Context, id string) error {
	c.upgrades.end(id)
	unclean, err := c.abandoned(id, c.driver.Remove(ctx, id))
	if err != nil {
		return fmt.Errorf("removing device %q: %w", id, err)
	}
	defer c.store.Lock(id)()
	return c.store.Update(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.returnServer(tx, d, unclean); err != nil {
			return err
		}
		return tx.DropDevice(d)
	})
}

func (c *controller) terminate(id string) error {
	defer c.enqueue(id)
	return c.change(id, func(tx *store.Tx, d *store.Device) error { return c.markDeleted(tx, d) })
}

// fail applies an injected provisioning failure. A reserved device is kept, an on-demand device is
// removed.
func (c *controller) fail(id string) error {
	defer c.enqueue(id)
	return c.change(id, func(tx *store.Tx, d *store.Device) error {
		events, _ := observe(d, driver.Event{Phase: driver.Failed, Time: c.now()})
		if err := c.addEvents(tx, d, events); err != nil || d.ReservationID != "" {
			return err
		}
		d.Deleting, d.State = true, StateDeprovisioning
		status := d.Vanish
		if status == 0 {
			status = http.StatusForbidden
		}
		return tx.Gone().Put(&store.Gone{ID: d.ID, ProjectID: d.ProjectID, Status: status, Time: c.now()})
	})
}

// recordDriverError records the driver's error on the device, once per distinct error.
func (c *controller) recordDriverError(id string, reason error) {
	err := c.change(id, func(tx *store.Tx, d *store.Device) error {
		if d.Trouble == reason.Error() {
			return errUnchanged
		}
		d.Trouble = reason.Error()
		return c.addEvents(tx, d, []store.Event{{Type: "driver.error", Body: d.Trouble, Time: c.now()}})
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.log.Error("recording the driver's error failed", "device", id, "error", err)
	}
}

// errUnchanged means that there is nothing to write.
var errUnchanged = errors.New("unchanged")

// change reads a device, applies fn and stores the result.
func (s *Server) change(id string, fn func(*store.Tx, *store.Device) error) error {
	defer s.store.Lock(id)()
	return s.changeLocked(id, fn)
}

// changeLocked is change for callers that hold the device's lock.
func (s *Server) changeLocked(id string, fn func(*store.Tx, *store.Device) error) error {
	err := s.store.Update(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if err != nil {
			return err
		}
		if err := fn(tx, d); err != nil {
			return err
		}
		d.Updated = s.now()
		if err := s.followDevice(tx, d); err != nil {
			return err
		}
		return tx.Devices().Put(d)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// Report records a driver's report about a machine. It makes Server a driver.Sink.
func (s *Server) Report(id string, e driver.Event) error {
	err := s.record(id, bound(e, s.now()))
	missing := errors.Is(err, store.ErrNotFound)
	if e.Phase == driver.Stopped || missing {
		s.devices.enqueue(id)
	}
	if err == nil || missing {
		return nil
	}
	s.log.Error("recording a report failed", "device", id, "error", err)
	return err
}

// record applies a report. Most reports repeat known facts, so it reads before it writes.
func (s *Server) record(id string, e driver.Event) error {
	defer s.store.Lock(id)()
	var news bool
	err := s.store.View(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if err == nil {
			_, news = observe(d, e)
		}
		return err
	})
	if err != nil || !news {
		return err
	}
	return s.changeLocked(id, func(tx *store.Tx, d *store.Device) error {
		events, _ := observe(d, e)
		if err := dropUsedUserdata(tx, d); err != nil {
			return err
		}
		return s.addEvents(tx, d, events)
	})
}

func (s *Server) addEvents(tx *store.Tx, d *store.Device, events []store.Event) error {
	for _, e := range events {
		e.ID = uuid.NewString()
		if err := tx.AddEvent(d, e); err != nil {
			return err
		}
	}
	return nil
}
