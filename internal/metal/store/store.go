// Package store persists the state of metal before any client sees it. It owns the file, its
// records, the allocated addresses, and the indexes that make the cost of a list depend only on its
// page. It never decides the content of a record. Start with Open and Store.Update.
//
// The records are in a bbolt file; a write is on disk when Update returns. The indexes are in
// memory only and built from the records at start, so they can't disagree with them after a crash.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/drover-dev/drover/internal/metal/capacity"
)

// format is the file format that this version writes.
const format = 1

// openTimeout is how long to wait for another process to release the file.
const openTimeout = 2 * time.Second

// Errors that callers decide on.
var (
	ErrNotFound = errors.New("not found")
	ErrInUse    = errors.New("another process is using this store")
	ErrNewer    = errors.New("the store was written by a newer version of Drover")
	ErrFull     = errors.New("no address is available")
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	db       *bolt.DB
	locks    keyedLocks
	devices  *Index
	blocks   *Index
	sessions *Index
	pools    pools
	commits  commits
}

// Open opens or creates the store at path.
func Open(path string) (*Store, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout, FreelistType: bolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("opening store %q: %w", path, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("opening store %q: %w", path, err)
	}
	s := &Store{db: db, devices: newIndex(), blocks: newIndex(), sessions: newIndex()}
	if err := errors.Join(s.prepare()); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("opening store %q: %w", path, err)
	}
	if err := s.index(); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("reading store %q: %w", path, err)
	}
	return s, nil
}

// Close releases the file.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) prepare() error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte(bucketMeta))
		var have int
		if data := meta.Get([]byte("format")); data != nil {
			if err := json.Unmarshal(data, &have); err != nil {
				return fmt.Errorf("reading format: %w", err)
			}
		}
		if have > format {
			return fmt.Errorf("format %d, known up to %d: %w", have, format, ErrNewer)
		}
		return meta.Put([]byte("format"), fmt.Append(nil, format))
	})
}

// index builds the indexes from the records, and counts devices again.
func (s *Store) index() error {
	used := map[string]capacity.Use{}
	err := s.View(func(tx *Tx) error {
		err := tx.Devices().Each(func(d *Device) error {
			s.devices.put(d.entry())
			u := d.use()
			u.Devices += used[useID(u)].Devices
			used[useID(u)] = u
			return nil
		})
		err = errors.Join(err, tx.Blocks().Each(func(b *Block) error {
			s.blocks.put(b.entry())
			return nil
		}))
		return errors.Join(err, tx.Sessions().Each(func(x *BGPSession) error {
			s.sessions.put(x.entry())
			return nil
		}))
	})
	if err != nil {
		return err
	}
	return s.recount(used)
}

// View runs fn on a consistent snapshot of the store.
func (s *Store) View(fn func(*Tx) error) error {
	return s.db.View(func(tx *bolt.Tx) error { return fn(&Tx{tx: tx, store: s}) })
}

// Update runs fn and commits its writes, all or none. fn may run more than once, and its commit is
// shared with others.
func (s *Store) Update(fn func(*Tx) error) error {
	w := &write{fn: fn, done: make(chan error, 1)}
	err := s.submit(w)
	if p, ok := err.(panicked); ok { //nolint:errorlint // Never wrapped.
		panic(p.reason)
	}
	if err != nil {
		return err
	}
	for _, apply := range w.applied {
		apply()
	}
	return nil
}

// Lock serializes writers of one object; call the returned function to unlock. Hold it from before
// the read until Update has returned, so that the indexes observe changes in order.
func (s *Store) Lock(id string) (unlock func()) { return s.locks.lock(id) }

// NewID returns a name for a record. Names increase with time, so that records created together are
// stored together: writing many then touches few pages, even in a large store.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Devices is the index of devices.
func (s *Store) Devices() *Index { return s.devices }

// Blocks is the index of address blocks.
func (s *Store) Blocks() *Index { return s.blocks }

// Sessions is the index of BGP sessions.
func (s *Store) Sessions() *Index { return s.sessions }
