package metal

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// fakeDriver records calls and sends the reports that tests specify.
type fakeDriver struct {
	mu       sync.Mutex
	sink     driver.Sink
	networks driver.Networks
	machines map[string]driver.Machine
	power    map[string]driver.Power
	elastic  map[string][]netip.Addr
	calls    []string
	fail     func(call, id string) error
}

func newFake() *fakeDriver {
	return &fakeDriver{machines: map[string]driver.Machine{}, power: map[string]driver.Power{}, elastic: map[string][]netip.Addr{}}
}

func (f *fakeDriver) new(_ context.Context, c driver.Config) (driver.Driver, error) {
	f.sink = c.Sink
	return f, nil
}

func (f *fakeDriver) called(call, id string) error {
	f.calls = append(f.calls, call+" "+id)
	if f.fail != nil {
		return f.fail(call, id)
	}
	return nil
}

func (f *fakeDriver) Networks() driver.Networks { return f.networks }

func (f *fakeDriver) Ensure(_ context.Context, m driver.Machine, p driver.Power) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("ensure", m.ID); err != nil {
		return err
	}
	f.machines[m.ID], f.power[m.ID] = m, p
	return nil
}

func (f *fakeDriver) Reinstall(_ context.Context, m driver.Machine) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.machines[m.ID] = m
	return f.called("reinstall", m.ID)
}

func (f *fakeDriver) Remove(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("remove", id); err != nil {
		return err
	}
	delete(f.machines, id)
	return nil
}

func (f *fakeDriver) SetAddresses(_ context.Context, id string, elastic []netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.elastic[id] = elastic
	return nil
}

func (f *fakeDriver) Known(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.machines {
		ids = append(ids, id)
	}
	return ids, nil
}

func (f *fakeDriver) Close() error { return nil }

func (f *fakeDriver) has(id string) (driver.Machine, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, found := f.machines[id]
	return m, found
}

func (f *fakeDriver) poweredAs(id string, p driver.Power) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.power[id] == p
}

func (f *fakeDriver) answersOn(id string, want ...netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Equal(f.elastic[id], want)
}

func (f *fakeDriver) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}
