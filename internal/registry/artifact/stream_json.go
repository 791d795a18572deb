package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDepth is how deep the part of a JSON index that is skipped may be nested, as in encoding/json.
const maxDepth = 10_000

// readJSON decodes one version at a time.
func (s *indexStream) readJSON(from io.Reader) error {
	d := newItemDecoder(from)
	found := false
	err := eachKey(d, func(key string) error {
		if key != "entries" {
			return skip(d)
		}
		found = true
		return eachKey(d, func(name string) error { return s.decode(d, name) })
	})
	if err == nil && !found {
		err = errors.New("the index has no entries")
	}
	if err != nil {
		return fmt.Errorf("%w: parsing the index: %w", ErrInvalid, err)
	}
	return nil
}

// decode decodes the versions of a package.
func (s *indexStream) decode(d *json.Decoder, name string) error {
	if t, err := d.Token(); err != nil || t == nil {
		return err
	} else if t != json.Delim('[') {
		return fmt.Errorf("the versions of %q are not a list", name)
	}
	for d.More() {
		var v *indexEntry
		if err := d.Decode(&v); err != nil {
			return err
		}
		if err := s.add(name, []*indexEntry{v}); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// eachKey calls do for each key of the next value, which must be an object or null. do must consume
// the value of the key.
func eachKey(d *json.Decoder, do func(key string) error) error {
	if t, err := d.Token(); err != nil || t == nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("not an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return errors.New("not a key")
		}
		if err := do(name); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// skip consumes the next value token by token, so that it takes no more memory than its largest
// token.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxDepth {
			return fmt.Errorf("the index is nested more than %d levels deep", maxDepth)
		}
		if depth == 0 {
			return nil
		}
	}
}

// newItemDecoder returns a decoder of JSON that fails before it buffers more than maxItem bytes. A
// decoder buffers a value until it is complete, whatever of it is kept.
func newItemDecoder(from io.Reader) *json.Decoder {
	r := &itemReader{from: from}
	d := json.NewDecoder(r)
	r.consumed = d.InputOffset
	return d
}

// itemReader limits how far reading may be ahead of what has been decoded.
type itemReader struct {
	from     io.Reader
	read     int64
	consumed func() int64
}

// Read implements io.Reader.
func (r *itemReader) Read(p []byte) (int, error) {
	left := maxItem - (r.read - r.consumed())
	if left <= 0 {
		return 0, fmt.Errorf("the index has a version of more than %d bytes", maxItem)
	}
	n, err := r.from.Read(p[:min(int64(len(p)), left)])
	r.read += int64(n)
	return n, err
}
