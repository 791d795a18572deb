package etcd

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
)

// pageSize is what the size of a database is a multiple of.
const pageSize = 512

// Check verifies a snapshot that is written to it: etcd appends the checksum of the database.
type Check struct {
	sum  hash.Hash
	tail []byte // the last bytes, which may be the checksum
	size int64
}

// NewCheck returns a Check.
func NewCheck() *Check { return &Check{sum: sha256.New()} }

// Write implements io.Writer.
func (c *Check) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	c.tail = append(c.tail, p...)
	if extra := len(c.tail) - sha256.Size; extra > 0 {
		c.sum.Write(c.tail[:extra])
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
	return len(p), nil
}

// Verify returns an error unless what was written is a complete snapshot.
func (c *Check) Verify() error {
	if c.size%pageSize != sha256.Size || !bytes.Equal(c.sum.Sum(nil), c.tail) {
		return fmt.Errorf("%w: its checksum is wrong", ErrDamagedSnapshot)
	}
	return nil
}
