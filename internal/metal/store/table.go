package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/drover-dev/drover/internal/metal/inventory"
)

const (
	bucketMeta      = "meta"
	bucketProjects  = "projects"
	bucketTokens    = "tokens"
	bucketDevices   = "devices"
	bucketUserdata  = "userdata"
	bucketEvents    = "events"
	bucketBlocks    = "blocks"
	bucketAssigned  = "assigned"
	bucketAddresses = "addresses"
	bucketKeys      = "sshkeys"
	bucketHardware  = "hardware"
	bucketBGP       = "bgp"
	bucketSessions  = "sessions"
	bucketGone      = "gone"
	bucketUsage     = "usage"
	bucketServers   = "servers"
)

var buckets = []string{
	bucketMeta, bucketProjects, bucketTokens, bucketDevices, bucketUserdata, bucketEvents, bucketBlocks,
	bucketAssigned, bucketAddresses, bucketKeys, bucketHardware, bucketBGP, bucketSessions, bucketGone, bucketUsage, bucketServers,
}

// Tx is a transaction. Its tables must not be used after it has ended.
type Tx struct {
	tx      *bolt.Tx
	store   *Store
	applied []func()
	changed bool
}

// bucket returns a bucket for reading.
func (t *Tx) bucket(name string) *bolt.Bucket { return t.tx.Bucket([]byte(name)) }

// change returns a bucket for writing.
func (t *Tx) change(name string) *bolt.Bucket {
	t.changed = true
	return t.bucket(name)
}

// afterwards runs fn once the transaction is committed.
func (t *Tx) afterwards(fn func()) { t.applied = append(t.applied, fn) }

// Sequence returns a new unique number.
func (t *Tx) Sequence() (uint64, error) { return t.change(bucketMeta).NextSequence() }

// Table holds the records of one kind.
type Table[T any] struct {
	tx   *Tx
	kind string
	id   func(*T) string
	// put and removed update the indexes.
	put     func(*T)
	removed func(id string)
}

func table[T any](t *Tx, bucket string, id func(*T) string) Table[T] {
	return Table[T]{tx: t, kind: bucket, id: id, put: func(*T) {}, removed: func(string) {}}
}

// Get reads a record. It returns ErrNotFound if the record does not exist.
func (t Table[T]) Get(id string) (*T, error) {
	data := t.tx.bucket(t.kind).Get([]byte(id))
	if data == nil {
		return nil, ErrNotFound
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("record %q of %s is damaged: %w", id, t.kind, err)
	}
	return v, nil
}

// Put writes a record.
func (t Table[T]) Put(v *T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %q of %s: %w", t.id(v), t.kind, err)
	}
	if err := t.tx.change(t.kind).Put([]byte(t.id(v)), data); err != nil {
		return err
	}
	t.put(v)
	return nil
}

// Delete deletes a record, if it exists.
func (t Table[T]) Delete(id string) error {
	if err := t.tx.change(t.kind).Delete([]byte(id)); err != nil {
		return err
	}
	t.removed(id)
	return nil
}

// Each calls fn with every record, ordered by ID.
func (t Table[T]) Each(fn func(*T) error) error {
	return t.tx.bucket(t.kind).ForEach(func(id, data []byte) error {
		v := new(T)
		if err := json.Unmarshal(data, v); err != nil {
			return fmt.Errorf("record %q of %s is damaged: %w", id, t.kind, err)
		}
		return fn(v)
	})
}

// All returns the records that match.
func (t Table[T]) All(match func(*T) bool) ([]*T, error) {
	var out []*T
	err := t.Each(func(v *T) error {
		if match(v) {
			out = append(out, v)
		}
		return nil
	})
	return out, err
}

// indexed connects an index to a table.
func indexed[T any](t *Tx, table Table[T], index *Index, entry func(*T) Entry) Table[T] {
	table.put = func(v *T) {
		e := entry(v)
		t.afterwards(func() { index.put(e) })
	}
	table.removed = func(id string) { t.afterwards(func() { index.remove(id) }) }
	return table
}

// Projects is the table of projects.
func (t *Tx) Projects() Table[Project] {
	return table(t, bucketProjects, func(p *Project) string { return p.ID })
}

// Tokens is the table of tokens, by hash.
func (t *Tx) Tokens() Table[Token] {
	return table(t, bucketTokens, func(x *Token) string { return x.Hash })
}

// Devices is the table of devices.
func (t *Tx) Devices() Table[Device] {
	plain := table(t, bucketDevices, func(d *Device) string { return d.ID })
	return indexed(t, plain, t.store.devices, (*Device).entry)
}

// Blocks is the table of address blocks.
func (t *Tx) Blocks() Table[Block] {
	plain := table(t, bucketBlocks, func(b *Block) string { return b.ID })
	return indexed(t, plain, t.store.blocks, (*Block).entry)
}

// Assigned maps assigned addresses to devices.
func (t *Tx) Assigned() Table[Assigned] {
	return table(t, bucketAssigned, func(a *Assigned) string { return a.ID })
}

// SSHKeys is the table of keys.
func (t *Tx) SSHKeys() Table[SSHKey] {
	return table(t, bucketKeys, func(k *SSHKey) string { return k.ID })
}

// Hardware is the table of hardware reservations.
func (t *Tx) Hardware() Table[Hardware] {
	return table(t, bucketHardware, func(h *Hardware) string { return h.ID })
}

// BGP is the table of BGP configurations, by project.
func (t *Tx) BGP() Table[BGPConfig] {
	return table(t, bucketBGP, func(c *BGPConfig) string { return c.ProjectID })
}

// Sessions is the table of BGP sessions.
func (t *Tx) Sessions() Table[BGPSession] {
	plain := table(t, bucketSessions, func(s *BGPSession) string { return s.ID })
	return indexed(t, plain, t.store.sessions, (*BGPSession).entry)
}

// Gone is the table of devices that were removed after failing to provision.
func (t *Tx) Gone() Table[Gone] { return table(t, bucketGone, func(g *Gone) string { return g.ID }) }

// Servers is the table of the servers in the inventory.
func (t *Tx) Servers() Table[inventory.Server] {
	return table(t, bucketServers, func(s *inventory.Server) string { return s.ID })
}

// Userdata returns the userdata of a device. It is stored separately because it can be large and
// lists do not need it.
func (t *Tx) Userdata(device string) []byte {
	return append([]byte(nil), t.bucket(bucketUserdata).Get([]byte(device))...)
}

// SetUserdata replaces the userdata of a device.
func (t *Tx) SetUserdata(device string, data []byte) error {
	b := t.change(bucketUserdata)
	if len(data) == 0 {
		return b.Delete([]byte(device))
	}
	return b.Put([]byte(device), data)
}

func eventKey(device string, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(device), n)
}
