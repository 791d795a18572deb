package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// updateConcurrently submits writes concurrently, so that they become one group, and returns the
// result of each and the number of commits.
func updateConcurrently(t *testing.T, s *Store, writes ...func(*Tx) error) (results []error, trips int) {
	t.Helper()
	before := lastTrip(t, s)
	held, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Update(func(tx *Tx) error {
			close(held)
			<-release
			return tx.SetUserdata("first", []byte("x"))
		})
	})
	<-held
	results = make([]error, len(writes))
	for i, fn := range writes {
		all.Go(func() {
			defer func() {
				if reason := recover(); reason != nil {
					results[i] = fmt.Errorf("panic: %v", reason)
				}
			}()
			results[i] = s.Update(fn)
		})
	}
	for deadline := time.Now().Add(10 * time.Second); waiting(s) < len(writes); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d writes wait", waiting(s), len(writes))
		}
	}
	close(release)
	all.Wait()
	return results, lastTrip(t, s) - before
}

func waiting(s *Store) int {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	return len(s.commits.waiting)
}

func lastTrip(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.View(func(tx *Tx) error {
		n = tx.tx.ID()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func put(id string) func(*Tx) error {
	return func(tx *Tx) error { return tx.Devices().Put(&Device{ID: id, Seq: uint64(id[0])}) }
}

func TestWaitingWritesAreCommittedTogether(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	var writes []func(*Tx) error
	for i := range 40 {
		writes = append(writes, put(string(rune('A'+i))))
	}
	results, trips := updateConcurrently(t, s, writes...)
	if err := errors.Join(results...); err != nil {
		t.Error(err)
	}
	if trips != 2 {
		t.Errorf("41 writes took %d trips, want one for the first and one for the others", trips)
	}
	if n := s.Devices().Count(Query{}); n != 40 {
		t.Errorf("the index has %d devices", n)
	}
}

func TestRejectedWriteDoesNotAffectItsGroup(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	refusal := errors.New("no")
	results, trips := updateConcurrently(t, s,
		put("a"),
		func(*Tx) error { return refusal },
		func(tx *Tx) error { return errors.Join(put("b")(tx), refusal) },
		put("c"),
		func(tx *Tx) error {
			_ = put("d")(tx)
			panic("a mistake")
		},
		put("e"),
	)
	for i, want := range []string{"", "no", "no", "", "panic: a mistake", ""} {
		got := ""
		if results[i] != nil {
			got = results[i].Error()
		}
		if got != want {
			t.Errorf("write %d: %q, want %q", i, got, want)
		}
	}
	if got := s.Devices().All(Query{}); !slices.Equal(got, []string{"a", "c", "e"}) {
		t.Errorf("stored: %v", got)
	}
	if trips != 2 {
		t.Errorf("%d trips to the disk", trips)
	}
	if results, trips := updateConcurrently(t, s, func(*Tx) error { return refusal }); trips != 1 || !errors.Is(results[0], refusal) {
		t.Errorf("a refusal alone made %d trips, %v", trips-1, results)
	}
}

func TestRecordNamesIncrease(t *testing.T) {
	var ids []string
	for range 1000 {
		ids = append(ids, NewID())
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 1000 {
		t.Error("names of records that are made one after the other do not rise")
	}
}
