package store

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// update changes the store or ends the test.
func update(t *testing.T, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Update(fn); err != nil {
		t.Fatal(err)
	}
}

// view reads the store or ends the test.
func view(t *testing.T, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.View(fn); err != nil {
		t.Fatal(err)
	}
}

func TestDevicesAreFoundByTheirProperties(t *testing.T) {
	d := &Device{
		ID: "d1", ProjectID: "p", Seq: 3, Hostname: "Web-1", Description: "The FIRST one", Metro: "am", Facility: "am1", Plan: "c3", OS: "ubuntu_24_04",
		Tags: []string{"a", "b:c"}, ReservationID: "r1", Addresses: []Address{{IP: netip.MustParseAddr("192.0.2.1")}},
	}
	got := d.entry()
	want := []string{
		"metro:am", "facility:am1", "hostname:web-1", "plan:c3", "reserved:true", "reservation:r1", "tag:a", "tag:b:c", "ip:192.0.2.1",
	}
	if diff := cmp.Diff(want, got.Terms); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
	if got.ID != "d1" || got.Project != "p" || got.Seq != 3 {
		t.Errorf("entry %+v", got)
	}
	for _, word := range []string{"d1", "the first one", "ubuntu", "web-1", "192.0.2.1"} {
		if !strings.Contains(got.Text, word) {
			t.Errorf("a search for %q finds nothing", word)
		}
	}
	if terms := (&Device{}).entry().Terms; !slices.Contains(terms, "reserved:false") {
		t.Errorf("terms %v of a device on demand", terms)
	}
}

func TestBlocksOfDevicesComeLast(t *testing.T) {
	reserved, managed := (&Block{ID: "a", Seq: 9}).entry(), (&Block{ID: "b", Seq: 1, Management: true, Tags: []string{"x"}}).entry()
	if reserved.Seq >= managed.Seq {
		t.Errorf("a reserved block has number %d, one of a device %d", reserved.Seq, managed.Seq)
	}
	if !slices.Contains(managed.Terms, "tag:x") {
		t.Errorf("terms %v", managed.Terms)
	}
	if got := (&BGPSession{ID: "s", DeviceID: "d"}).entry(); !slices.Equal(got.Terms, []string{"device:d"}) {
		t.Errorf("a session has terms %v", got.Terms)
	}
}

func TestEntriesMatchQueries(t *testing.T) {
	e := Entry{Terms: []string{"a", "b", "c"}, Text: "größe\nweb"}
	for name, tt := range map[string]struct {
		query  Query
		search string
		want   bool
	}{
		"everything":               {Query{}, "", true},
		"all terms":                {Query{Terms: []string{"a", "c"}}, "", true},
		"a term that is missing":   {Query{Terms: []string{"a", "d"}}, "", false},
		"one of a group":           {Query{AnyOf: [][]string{{"d", "b"}}}, "", true},
		"none of a group":          {Query{AnyOf: [][]string{{"a"}, {"d", "e"}}}, "", false},
		"an empty group":           {Query{AnyOf: [][]string{{}}}, "", false},
		"a search":                 {Query{}, "größe", true},
		"a search without success": {Query{}, "groesse", false},
		"a part of a term":         {Query{Terms: []string{""}}, "", false},
	} {
		if got := e.matches(tt.query, tt.search); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

func TestPagesOfAnIndex(t *testing.T) {
	x := newIndex()
	for i := range 5 {
		x.put(Entry{ID: fmt.Sprint(i), Project: "p", Seq: uint64(i), Terms: []string{"even:" + fmt.Sprint(i%2 == 0)}, Text: strings.Repeat("x", i)})
	}
	for name, tt := range map[string]struct {
		query         Query
		offset, limit int
		ids           []string
		total         int
	}{
		"the first page":      {Query{}, 0, 2, []string{"0", "1"}, 5},
		"a later page":        {Query{Project: "p"}, 3, 2, []string{"3", "4"}, 5},
		"the end":             {Query{}, 4, 10, []string{"4"}, 5},
		"beyond the end":      {Query{}, 99, 10, nil, 5},
		"an empty page":       {Query{}, 0, 0, nil, 5},
		"another project":     {Query{Project: "q"}, 0, 10, nil, 0},
		"a term":              {Query{Terms: []string{"even:true"}}, 1, 1, []string{"2"}, 3},
		"a search":            {Query{Search: "XXX"}, 0, 10, []string{"3", "4"}, 2},
		"a page of a search":  {Query{Search: "xxx"}, 1, 1, []string{"4"}, 2},
		"a term and a search": {Query{Terms: []string{"even:true"}, Search: "xxx"}, 0, 10, []string{"4"}, 1},
		"an unknown term":     {Query{Terms: []string{"odd"}}, 0, 10, nil, 0},
	} {
		ids, total := x.Page(tt.query, tt.offset, tt.limit)
		if !slices.Equal(ids, tt.ids) || total != tt.total {
			t.Errorf("%s: %v of %d, want %v of %d", name, ids, total, tt.ids, tt.total)
		}
	}
	for i := range 5 {
		x.remove(fmt.Sprint(i))
		x.remove("missing")
	}
	if len(x.entries)+len(x.lists) != 0 {
		t.Errorf("an empty index keeps %d entries and %d lists", len(x.entries), len(x.lists))
	}
}

func TestEventsAreBoundedAndNewestFirst(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	d := &Device{ID: "d"}
	update(t, s, func(tx *Tx) error {
		d.Events = 0 // an update may be repeated
		for i := range eventsKept + 3 {
			if err := tx.AddEvent(d, Event{ID: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return tx.Devices().Put(d)
	})
	view(t, s, func(tx *Tx) error {
		events, total, err := tx.Events(d, 0, 2)
		if err != nil || total != eventsKept || len(events) != 2 || events[0].ID != fmt.Sprint(eventsKept+2) {
			t.Errorf("%d events, the first ones %v, error %v", total, events, err)
		}
		events, _, err = tx.Events(d, eventsKept-1, 10)
		if err != nil || len(events) != 1 || events[0].ID != "3" {
			t.Errorf("the oldest event is %v, error %v", events, err)
		}
		if events, _, _ := tx.Events(d, eventsKept, 10); len(events) != 0 {
			t.Errorf("there are older events: %v", events)
		}
		return nil
	})
}

func TestDroppingADeviceLeavesNothingBehind(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	pool := Pool{Prefix: netip.MustParsePrefix("192.0.2.0/28")}
	var own netip.Addr
	update(t, s, func(tx *Tx) (err error) {
		if own, err = tx.Take(pool, 1, "own"); err != nil {
			return err
		}
		d := &Device{ID: "d", ReservationID: "h", Addresses: []Address{{ID: "a1", BlockID: "own"}, {ID: "a2", BlockID: "elastic"}, {ID: "a3", BlockID: "gone"}}}
		return errors.Join(
			tx.Projects().Put(&Project{ID: "p"}),
			tx.Blocks().Put(&Block{ID: "own", Management: true, Prefix: netip.PrefixFrom(own, 32)}),
			tx.Blocks().Put(&Block{ID: "elastic", ProjectID: "p", Uses: []Use{{ID: "a2", DeviceID: "d"}, {ID: "x", DeviceID: "other"}}}),
			tx.Assigned().Put(&Assigned{ID: "a1", DeviceID: "d"}), tx.Assigned().Put(&Assigned{ID: "a2", DeviceID: "d"}),
			tx.Hardware().Put(&Hardware{ID: "h", ProjectID: "p", DeviceID: "d"}),
			tx.Sessions().Put(&BGPSession{ID: "s1", DeviceID: "d"}), tx.Sessions().Put(&BGPSession{ID: "s2", Seq: 1, DeviceID: "other"}),
			tx.SetUserdata("d", []byte("#cloud-config")), tx.AddEvent(d, Event{ID: "e"}), tx.Devices().Put(d),
		)
	})
	update(t, s, func(tx *Tx) error {
		d, err := tx.Devices().Get("d")
		if err != nil {
			return err
		}
		return tx.DropDevice(d)
	})
	view(t, s, func(tx *Tx) error {
		for _, missing := range []error{second(tx.Devices().Get("d")), second(tx.Blocks().Get("own")), second(tx.Assigned().Get("a1")), second(tx.Assigned().Get("a2")), second(tx.Sessions().Get("s1"))} {
			if !errors.Is(missing, ErrNotFound) {
				t.Errorf("the record still exists, error %v, want it deleted", missing)
			}
		}
		elastic, err := tx.Blocks().Get("elastic")
		if err != nil || len(elastic.Uses) != 1 || elastic.Uses[0].DeviceID != "other" {
			t.Errorf("the elastic block is used by %v, error %v", elastic.Uses, err)
		}
		if h, err := tx.Hardware().Get("h"); err != nil || h.DeviceID != "" {
			t.Errorf("the hardware is of device %q, error %v", h.DeviceID, err)
		}
		if second(tx.Sessions().Get("s2")) != nil || len(tx.Userdata("d")) != 0 || !tx.free(own, 1) {
			t.Error("the session of another device is gone, or userdata or an address is left")
		}
		return nil
	})
	if s.Devices().Count(Query{})+s.Sessions().Count(Query{Terms: []string{"device:d"}}) != 0 {
		t.Error("the indexes know the device")
	}
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

func TestHardwareOfAnotherDeviceStaysTaken(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	update(t, s, func(tx *Tx) error { return tx.Hardware().Put(&Hardware{ID: "h", DeviceID: "other"}) })
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.freeHardware(&Device{ID: "d"}), tx.freeHardware(&Device{ID: "d", ReservationID: "h"}), tx.freeHardware(&Device{ID: "d", ReservationID: "missing"}))
	})
	view(t, s, func(tx *Tx) error {
		if h, err := tx.Hardware().Get("h"); err != nil || h.DeviceID != "other" {
			t.Errorf("the hardware is of device %q, error %v", h.DeviceID, err)
		}
		return nil
	})
}

func TestUserdata(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	for _, data := range []string{"first", "second", "", "third"} {
		update(t, s, func(tx *Tx) error { return tx.SetUserdata("d", []byte(data)) })
		view(t, s, func(tx *Tx) error {
			if got := string(tx.Userdata("d")); got != data {
				t.Errorf("userdata %q, want %q", got, data)
			}
			return nil
		})
	}
}

func TestTablesSelectRecords(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.Projects().Put(&Project{ID: "b", Name: "x"}), tx.Projects().Put(&Project{ID: "a", Name: "x"}), tx.Projects().Put(&Project{ID: "c", Name: "y"}))
	})
	view(t, s, func(tx *Tx) error {
		found, err := tx.Projects().All(func(p *Project) bool { return p.Name == "x" })
		if err != nil || len(found) != 2 || found[0].ID != "a" || found[1].ID != "b" {
			t.Errorf("found %v, error %v", found, err)
		}
		stop := errors.New("stop")
		if err := tx.Projects().Each(func(*Project) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("error %v, want that of the function", err)
		}
		return nil
	})
}

func TestDamagedRecordsAreNamed(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	update(t, s, func(tx *Tx) error { return tx.change(bucketProjects).Put([]byte("p"), []byte("{")) })
	view(t, s, func(tx *Tx) error {
		_, err := tx.Projects().Get("p")
		for _, err := range []error{err, tx.Projects().Each(func(*Project) error { return nil })} {
			if err == nil || !strings.HasPrefix(err.Error(), `record "p" of projects is damaged: `) {
				t.Errorf("error %v", err)
			}
		}
		return nil
	})
}

func TestLocksSerializeAndVanish(t *testing.T) {
	var k keyedLocks
	var all sync.WaitGroup
	counts := map[string]int{"a": 0}
	for range 50 {
		all.Go(func() {
			defer k.lock("a")()
			counts["a"]++
		})
	}
	all.Wait()
	if counts["a"] != 50 || len(k.locks) != 0 {
		t.Errorf("%d increments, %d locks left", counts["a"], len(k.locks))
	}
	unlock := k.lock("a")
	other := make(chan struct{})
	go func() {
		defer close(other)
		k.lock("b")()
	}()
	select {
	case <-other:
	case <-time.After(time.Minute):
		t.Error("a lock of another key waits")
	}
	unlock()
}

func TestTakingFromSmallPools(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	for name, tt := range map[string]struct {
		pool  Pool
		count int
		most  int
	}{
		"one address":                        {Pool{Prefix: netip.MustParsePrefix("192.0.2.1/32")}, 1, 1},
		"all of them":                        {Pool{Prefix: netip.MustParsePrefix("198.51.100.0/30")}, 1, 4},
		"the first two and the last are not": {Pool{Prefix: netip.MustParsePrefix("198.51.100.8/29"), Reserve: 2}, 1, 5},
		"aligned blocks":                     {Pool{Prefix: netip.MustParsePrefix("203.0.113.0/28"), Reserve: 1}, 4, 2},
		"a block that does not fit":          {Pool{Prefix: netip.MustParsePrefix("203.0.113.64/31")}, 4, 0},
		"the end of all addresses":           {Pool{Prefix: netip.MustParsePrefix("255.255.255.252/30")}, 1, 4},
		"long addresses":                     {Pool{Prefix: netip.MustParsePrefix("2001:db8::/126")}, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[netip.Addr]bool{}
			for {
				var a netip.Addr
				err := s.Update(func(tx *Tx) (err error) {
					a, err = tx.Take(tt.pool, tt.count, "owner")
					return err
				})
				if errors.Is(err, ErrFull) {
					break
				}
				if err != nil || seen[a] || !tt.pool.Prefix.Contains(a) || len(seen) > 20 {
					t.Fatalf("address %s after %d, error %v", a, len(seen), err)
				}
				seen[a] = true
			}
			if len(seen) != tt.most {
				t.Errorf("%d addresses, want %d", len(seen), tt.most)
			}
		})
	}
}
