package bounded

import "bytes"

// Estimates of what the parts of a JSON value take in memory once they are decoded. A struct takes
// the same memory for `{}` and for `null`, so that the estimate depends on the number of values,
// not on their size.
const (
	// memberCost is the estimate for a member of an object: an entry of a map.
	memberCost = 64
	// valueCost is the estimate for an object, an array, or an element of an array.
	valueCost = 256
)

// scanner measures JSON as it arrives: its size, and the memory that it takes once it is decoded.
// Line breaks may occur inside a value, so that only brackets reveal where it ends.
type scanner struct {
	limits Limits
	// stream resets the measures at the end of each value, because clients decode one at a time.
	stream bool

	open             []byte // brackets around the current position
	inString, escape bool
	size, cost       int64
}

const (
	quote = iota + 1
	opening
	closing
	comma
)

// tokens has the characters with a meaning outside of strings.
var tokens = [256]uint8{'"': quote, '{': opening, '[': opening, '}': closing, ']': closing, ',': comma}

// add measures more data. It fails if the current value, or one that ended in the data, exceeds a
// limit.
func (s *scanner) add(data []byte) error {
	begin := 0
	for i := 0; i < len(data); i++ {
		if s.inString {
			i += s.skipString(data[i:])
			continue
		}
		switch c := data[i]; tokens[c] {
		case quote:
			s.inString = true
		case opening:
			s.open = append(s.open, c)
			s.cost += valueCost
		case comma:
			s.cost += s.afterComma()
		case closing:
			s.open = s.open[:max(0, len(s.open)-1)]
			if len(s.open) == 0 && s.stream {
				s.size += int64(i + 1 - begin)
				if err := s.check(); err != nil {
					return err
				}
				begin, s.size, s.cost = i+1, 0, 0
			}
		}
	}
	s.size += int64(len(data) - begin)
	return s.check()
}

// skipString returns the position of the quote that ends the string, or the last one.
func (s *scanner) skipString(data []byte) int {
	from := 0
	if s.escape {
		s.escape, from = false, 1
	}
	for {
		end := bytes.IndexByte(data[from:], '"')
		if end < 0 {
			s.escape = escapes(data[from:])
			return len(data) - 1
		}
		if !escapes(data[from : from+end]) {
			s.inString = false
			return from + end
		}
		from += end + 1
	}
}

// escapes reports whether text ends in a backslash that is not escaped itself.
func escapes(text []byte) bool {
	if len(text) == 0 || text[len(text)-1] != '\\' {
		return false
	}
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}

// itemDepth is how deep the items of a list are at most: {"items": [{}, {}]}.
const itemDepth = 2

// afterComma returns the cost of what follows a comma.
func (s *scanner) afterComma() int64 {
	switch depth := len(s.open); {
	case depth == 0 || s.open[depth-1] == '{':
		return memberCost
	case depth <= itemDepth:
		return max(valueCost, s.limits.Item)
	default:
		return valueCost
	}
}

// memory returns the estimate of what the current value takes.
func (s *scanner) memory() int64 { return s.size + s.cost }

func (s *scanner) check() error {
	size, memory := s.limits.Body, s.limits.Memory
	if s.stream {
		size, memory = s.limits.Event, s.limits.Memory/eventShare
	}
	switch {
	case s.size > size:
		return &TooLargeError{Peer: s.limits.Peer, Limit: size}
	case memory > 0 && s.memory() > memory:
		return &TooLargeError{Peer: s.limits.Peer, Limit: memory, Decoded: true}
	}
	return nil
}
