package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestIndexMatchesAScan changes an index at random and compares every kind of query with a scan of
// all entries.
func TestIndexMatchesAScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, all := newIndex(), map[string]Entry{}
	term := func() string { return fmt.Sprintf("t%d", r.IntN(4)) }
	for i := range 3000 {
		id := fmt.Sprintf("id-%d", r.IntN(80))
		old, known := all[id]
		switch {
		case known && r.IntN(4) == 0:
			x.remove(id)
			delete(all, id)
			continue
		case !known:
			old = Entry{ID: id, Seq: uint64(i), Project: fmt.Sprintf("p%d", r.IntN(2))}
		}
		old.Terms = []string{term(), term()}
		old.Text = strings.Join(old.Terms, " ") + id
		x.put(old)
		all[id] = old
		q := Query{Project: []string{"", "p0", "p1"}[r.IntN(3)]}
		for range r.IntN(3) {
			q.Terms = append(q.Terms, term())
		}
		if r.IntN(4) == 0 {
			q.AnyOf = [][]string{{term(), term()}}
		}
		if r.IntN(4) == 0 {
			q.Search = "ID-1"
		}
		compare(t, x, all, q)
	}
}

func compare(t *testing.T, x *Index, all map[string]Entry, q Query) {
	t.Helper()
	var want []Entry
	for _, e := range all {
		if (q.Project == "" || e.Project == q.Project) && e.matches(q, strings.ToLower(q.Search)) {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, func(a, b Entry) int { return int(a.Seq) - int(b.Seq) })
	var wantPage []string
	for _, e := range want[min(3, len(want)):min(8, len(want))] {
		wantPage = append(wantPage, e.ID)
	}
	got, total := x.Page(q, 3, 5)
	if diff := cmp.Diff(wantPage, got); diff != "" || total != len(want) {
		t.Fatalf("query %+v: total %d, want %d; page (-want +got):\n%s", q, total, len(want), diff)
	}
}

func TestAddressesAreAssignedOnce(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	pool := Pool{Prefix: netip.MustParsePrefix("198.18.0.0/24")}
	var mu sync.Mutex
	taken := map[netip.Addr]bool{}
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for i := range 8 {
				count := 1 << (i % 3)
				var first netip.Addr
				err := s.Update(func(tx *Tx) (err error) {
					first, err = tx.Take(pool, count, fmt.Sprint(n))
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				if last := first.As4()[3]; int(last)%count != 0 {
					t.Errorf("%d addresses begin at %s", count, first)
				}
				mu.Lock()
				for a := range count {
					if at := skip(first, a); taken[at] {
						t.Errorf("%s was given out twice", at)
					} else {
						taken[at] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	var full error
	for full == nil {
		full = s.Update(func(tx *Tx) error {
			a, err := tx.Take(pool, 1, "filler")
			mu.Lock()
			taken[a] = err == nil
			mu.Unlock()
			return err
		})
	}
	if !errors.Is(full, ErrFull) {
		t.Fatal(full)
	}
	if n := len(taken); n != 257 { // all, and the invalid one of the error
		t.Errorf("%d addresses were given out of 256", n-1)
	}
	free := netip.MustParsePrefix("198.18.0.8/29")
	err := s.Update(func(tx *Tx) error { return tx.Release(free) })
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(func(tx *Tx) error {
		a, err := tx.Take(pool, 8, "again")
		if a != free.Addr() {
			t.Errorf("after a release %s is given out, want %s", a, free.Addr())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSkipAndAlign(t *testing.T) {
	for _, tt := range []struct {
		from, skipped string
		n             int
	}{
		{"10.0.0.255", "10.0.1.0", 1},
		{"10.255.255.255", "11.0.0.0", 1},
		{"10.0.0.1", "10.0.3.233", 1000},
		{"2001:db8::ffff", "2001:db8::1:0", 1},
	} {
		if got := skip(netip.MustParseAddr(tt.from), tt.n); got.String() != tt.skipped {
			t.Errorf("skip(%s, %d) = %s, want %s", tt.from, tt.n, got, tt.skipped)
		}
	}
	if got := skip(netip.MustParseAddr("255.255.255.255"), 1); got.IsValid() {
		t.Errorf("beyond the last address is %s", got)
	}
	if got := aligned(netip.MustParseAddr("10.0.0.5"), 4); got.String() != "10.0.0.8" {
		t.Errorf("aligned = %s", got)
	}
}

func TestRecordsAndIndexesAreReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	err := s.Update(func(tx *Tx) error {
		d := &Device{ID: "d1", Seq: 1, ProjectID: "p", Hostname: "h", Tags: []string{"x"}}
		for i := range eventsKept + 10 {
			if err := tx.AddEvent(d, Event{ID: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return errors.Join(tx.Devices().Put(d), tx.SetUserdata("d1", []byte("data")))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if ids := s.Devices().All(Query{Project: "p", Terms: []string{"tag:x"}}); !slices.Equal(ids, []string{"d1"}) {
		t.Errorf("the index finds %v", ids)
	}
	err = s.View(func(tx *Tx) error {
		d, err := tx.Devices().Get("d1")
		if err != nil {
			return err
		}
		events, total, err := tx.Events(d, 0, 2)
		if total != eventsKept || len(events) != 2 || events[0].ID != fmt.Sprint(eventsKept+9) {
			t.Errorf("%d events, first %v", total, events)
		}
		if string(tx.Userdata("d1")) != "data" {
			t.Error("userdata is lost")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRejectedUpdateChangesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	refusal := errors.New("no")
	err := s.Update(func(tx *Tx) error {
		return errors.Join(tx.Devices().Put(&Device{ID: "d", Seq: 1}), refusal)
	})
	if !errors.Is(err, refusal) {
		t.Errorf("err = %v", err)
	}
	if n := s.Devices().Count(Query{}); n != 0 {
		t.Errorf("the index has %d devices", n)
	}
}

func TestStoreIsExclusiveAndRejectsNewerFormats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	if _, err := Open(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a second user: %v", err)
	}
	err := s.Update(func(tx *Tx) error { return tx.tx.Bucket([]byte(bucketMeta)).Put([]byte("format"), []byte("99")) })
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if _, err := Open(path); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer store: %v", err)
	}
}
