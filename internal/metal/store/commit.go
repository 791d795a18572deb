package store

import (
	"errors"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// commits makes writes durable in groups: all who come while one trip to the
// disk is under way share the next, so the slower the disk, the larger the
// groups. (bbolt's own batches wait for a time instead, and then queue up as
// many small trips.)
type commits struct {
	mu      sync.Mutex
	waiting []*write
	busy    bool
}

// write is what one caller of Update wants.
type write struct {
	fn      func(*Tx) error
	applied []func()
	done    chan error
}

// panicked is how a caller's fn ended, for the caller to hear of.
type panicked struct{ reason any }

func (p panicked) Error() string { return fmt.Sprint("panic: ", p.reason) }

// submit waits until the write is on disk, or refused.
func (s *Store) submit(w *write) error {
	s.commits.mu.Lock()
	s.commits.waiting = append(s.commits.waiting, w)
	first := !s.commits.busy
	s.commits.busy = true
	s.commits.mu.Unlock()
	if first {
		go s.commit()
	}
	return <-w.done
}

// commit goes on until nobody waits.
func (s *Store) commit() {
	for {
		s.commits.mu.Lock()
		group := s.commits.waiting
		s.commits.waiting = nil
		s.commits.busy = len(group) > 0
		s.commits.mu.Unlock()
		if len(group) == 0 {
			return
		}
		s.commitGroup(group)
	}
}

// commitGroup makes one trip to the disk. A write that is refused is left out;
// if it had changed something before, the others begin anew without it.
func (s *Store) commitGroup(group []*write) {
	for len(group) > 0 {
		var rest []*write
		err := s.db.Update(func(tx *bolt.Tx) (err error) {
			group, rest, err = s.attemptAll(tx, group)
			return err
		})
		if errors.Is(err, errAgain) {
			group = rest
			continue
		}
		for _, w := range group {
			w.done <- wrote(err)
		}
		return
	}
}

// attemptAll runs writes in a transaction and returns those that it holds now.
// errAgain means that it must not be kept, and with what to begin anew.
func (s *Store) attemptAll(tx *bolt.Tx, group []*write) (held, again []*write, err error) {
	for i, w := range group {
		changed, err := s.attempt(tx, w)
		if err == nil {
			held = append(held, w)
			continue
		}
		w.done <- err
		if changed {
			return nil, append(held, group[i+1:]...), errAgain
		}
	}
	if len(held) == 0 {
		return nil, nil, errAgain
	}
	return held, nil, nil
}

// errAgain has a transaction rolled back.
var errAgain = errors.New("begin anew")

func wrote(err error) error {
	if err != nil {
		return fmt.Errorf("writing store: %w", err)
	}
	return nil
}

// attempt runs a write in a transaction and tells whether it changed anything.
func (s *Store) attempt(tx *bolt.Tx, w *write) (changed bool, err error) {
	t := &Tx{tx: tx, store: s}
	defer func() {
		if reason := recover(); reason != nil {
			changed, err = true, panicked{reason}
		}
	}()
	err = w.fn(t)
	w.applied = t.applied
	return t.changed, err
}
