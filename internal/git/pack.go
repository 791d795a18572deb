package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// objectsPerFile is how many objects a pack may have for each allowed file: the file itself, and
// directories and commits.
const objectsPerFile = 4

// unpack stores the objects of a pack. A small pack can contain huge objects, so it is measured
// before anything is stored.
func unpack(pack []byte, to *memory.Storage, l Limits) error {
	if err := measure(pack, l); err != nil {
		return err
	}
	return packfile.UpdateObjectStorage(to, bytes.NewReader(pack))
}

// measure fails for packs whose objects exceed the limits. Objects are either compressed, with a
// declared size that the scanner enforces, or differences to others, which declare the size of
// their result when they are decompressed.
func measure(pack []byte, l Limits) error {
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if most := int64(l.Files) * objectsPerFile; int64(count) > most {
		return &TooLargeError{What: fmt.Sprintf("it has %d objects", count), Limit: most}
	}
	left := l.Fetch
	for range count {
		size, err := measureNext(scanner, left)
		if err != nil {
			return err
		}
		if left -= size; left < 0 {
			return &TooLargeError{What: fmt.Sprintf("its files have more than %d bytes", l.Fetch), Limit: l.Fetch}
		}
	}
	return nil
}

// measureNext returns the memory that the next object takes, or more than what is left of it.
func measureNext(scanner *packfile.Scanner, left int64) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, err
	}
	if header.Length < 0 || header.Length > left {
		return left + 1, nil
	}
	if !header.Type.IsDelta() {
		_, _, err := scanner.NextObject(io.Discard)
		return header.Length, err
	}
	begin := head{max: maxPrefix}
	if _, _, err := scanner.NextObject(&begin); err != nil {
		return 0, err
	}
	result, err := resultSize(begin.Bytes())
	if err != nil || result > left {
		return left + 1, err
	}
	return header.Length + result, nil
}

// maxPrefix is the size of two variable-length numbers.
const maxPrefix = 20

// resultSize reads the size of what a difference results in: the second of two numbers.
func resultSize(delta []byte) (int64, error) {
	_, rest, err := variable(delta)
	if err != nil {
		return 0, err
	}
	size, _, err := variable(rest)
	return size, err
}

// variable reads a number of seven bits per byte, of which the last has no high bit.
func variable(data []byte) (int64, []byte, error) {
	var n int64
	for i, b := range data {
		if i > 8 {
			break
		}
		n |= int64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return n, data[i+1:], nil
		}
	}
	return 0, nil, fmt.Errorf("reading a delta: %w", packfile.ErrInvalidDelta)
}

// errMissing means that a server left out an object that the commit needs.
var errMissing = errors.New("the server left out objects of the commit")

// missing replaces the error for an object that isn't there.
func missing(err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return errMissing
	}
	return err
}
