package store

import (
	"errors"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// commits makes writes durable in groups: all writes that arrive during one commit share the next,
// so a slower disk gets larger groups. (bbolt's own batches wait for a fixed time instead, and then
// queue many small commits.)
type commits struct {
	mu      sync.Mutex
	waiting []*write
	busy    bool
}

// write is a pending call of Update.
type write struct {
	fn      func(*Tx) error
	applied []func()
	done    chan error
}

// panicked is the panic of a caller's fn, passed back to that caller.
type panicked struct{ reason any }

func (p panicked) Error() string { return fmt.Sprint("panic: ", p.reason) }

// submit waits until the write is on disk or rejected.
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

// commit runs until no write is pending.
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

// commitGroup commits a group of writes. It drops a failed write; if that had already changed
// something, the others run again without it.
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

// attemptAll runs writes in a transaction and returns those that it contains. errAgain means that
// the transaction must be rolled back and the returned writes run again.
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

// errAgain rolls back a transaction.
var errAgain = errors.New("retry the transaction")

func wrote(err error) error {
	if err != nil {
		return fmt.Errorf("writing store: %w", err)
	}
	return nil
}

// attempt runs a write in a transaction and reports whether it changed anything.
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
