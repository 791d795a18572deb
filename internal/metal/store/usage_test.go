package store

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/capacity"
)

func usage(t *testing.T, s *Store) map[string]int {
	t.Helper()
	out := map[string]int{}
	err := s.View(func(tx *Tx) error {
		return tx.Usage().Each(func(u *capacity.Use) error {
			out[useID(*u)] = u.Devices
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// counted counts the devices themselves.
func counted(t *testing.T, s *Store) map[string]int {
	t.Helper()
	out := map[string]int{}
	err := s.View(func(tx *Tx) error {
		return tx.Devices().Each(func(d *Device) error {
			out[useID(d.use())]++
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDevicesOfOlderVersionsAreCounted opens a store that was written without counting.
func TestDevicesOfOlderVersionsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(func(tx *Tx) error {
		return errors.Join(
			tx.Devices().Put(&Device{ID: "1", ProjectID: "p", Plan: "local.small", Metro: "da"}),
			tx.Devices().Put(&Device{ID: "2", ProjectID: "p", Plan: "local.small", Metro: "da"}),
			tx.Devices().Put(&Device{ID: "3", ProjectID: "p", Plan: "local.small", Metro: "da", ReservationID: "r"}),
			tx.Usage().Put(&capacity.Use{Project: "gone", Plan: "local.small", Metro: "da", Devices: 7}),
		)
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff(map[string]int{"p/local.small/da/false": 2, "p/local.small/da/true": 1}, usage(t, s)); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// TestConcurrentOrdersNeverExceedCapacity orders and deletes at random from many goroutines, while
// another one checks every state that a reader can see.
func TestConcurrentOrdersNeverExceedCapacity(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	most, each := int64(12), int64(5)
	settings := capacity.Settings{Limits: []capacity.Limit{{Devices: int(most)}}}
	quotas := map[string]capacity.Quota{"a": {Machines: &each}, "b": {Machines: &each}, "c": {Machines: &each}}
	done := make(chan struct{})
	var watcher, clients sync.WaitGroup
	watcher.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			now := counted(t, s)
			total := 0
			for id, n := range now {
				if total += n; n > int(each) {
					t.Errorf("%s has %d devices, more than its quota", id, n)
				}
			}
			if total > int(most) {
				t.Errorf("%d devices exist, but %d fit", total, most)
			}
		}
	})
	var full sync.Once
	for i := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			var mine []*Device
			for range 60 {
				if len(mine) > 0 && random.IntN(3) == 0 {
					d := mine[0]
					mine = mine[1:]
					if err := s.Update(func(tx *Tx) error { return tx.DropDevice(d) }); err != nil {
						t.Error(err)
					}
					continue
				}
				d := &Device{ID: NewID(), ProjectID: string("abc"[random.IntN(3)]), Plan: "local.small", Metro: "da"}
				err := s.Update(func(tx *Tx) error { return addIfFits(tx, d, settings, quotas) })
				var shortage *capacity.ShortageError
				var quota *capacity.QuotaError
				switch {
				case err == nil:
					mine = append(mine, d)
				case errors.As(err, &shortage):
					full.Do(func() { t.Log("the limit was reached") })
				case !errors.As(err, &quota):
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	close(done)
	watcher.Wait()
	if diff := cmp.Diff(counted(t, s), usage(t, s)); diff != "" {
		t.Errorf("devices and usage differ (-devices +usage):\n%s", diff)
	}
	fillsExactly(t, s, settings, int(most))
}

// fillsExactly orders at once what is left and more: what fits must succeed.
func fillsExactly(t *testing.T, s *Store, settings capacity.Settings, most int) {
	t.Helper()
	var all sync.WaitGroup
	for range 2 * most {
		all.Go(func() {
			_ = s.Update(func(tx *Tx) error {
				return addIfFits(tx, &Device{ID: NewID(), ProjectID: "rest", Plan: "local.small", Metro: "da"}, settings, nil)
			})
		})
	}
	all.Wait()
	total := 0
	for _, n := range counted(t, s) {
		total += n
	}
	if total != most {
		t.Errorf("%d devices exist after more were ordered than fit; %d fit", total, most)
	}
}

func addIfFits(tx *Tx, d *Device, settings capacity.Settings, quotas map[string]capacity.Quota) error {
	in := capacity.Input{Settings: settings, Quotas: quotas}
	err := tx.Usage().Each(func(u *capacity.Use) error {
		in.Used = append(in.Used, *u)
		return nil
	})
	if err != nil {
		return err
	}
	if err := capacity.New(in).Take(capacity.Order{Project: d.ProjectID, Plan: d.Plan, Metro: d.Metro}); err != nil {
		return err
	}
	return tx.AddDevice(d)
}
