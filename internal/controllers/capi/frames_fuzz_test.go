package capi

import "testing"

// FuzzFrames finds responses whose verdict depends on how the network splits them: a limit that is
// only checked for whole frames could be evaded.
func FuzzFrames(f *testing.F) {
	head := "HTTP/1.1 101 Switching Protocols\r\n\r\n"
	f.Add([]byte("HTTP/1.1 403 Forbidden\r\n\r\nno"), 3)
	f.Add([]byte(head+"\x82\x08\x80\x03\x00\x01\x00\x00\x00\x00"), 1)
	f.Add([]byte(head+"\x82\x7e\x00\x08\x00\x00\x00\x01\x01\xff\xff\xff"), 2)
	f.Add([]byte(head+"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), 5)
	f.Add([]byte(head+"\x82\x81aaaa"), 4)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 || size > len(data) {
			return
		}
		whole, parts := &framed{}, &framed{}
		want := whole.add(append([]byte(nil), data...))
		var got error
		for rest := data; len(rest) > 0 && got == nil; {
			n := min(size, len(rest))
			got, rest = parts.add(rest[:n:n]), rest[n:]
		}
		if (got == nil) != (want == nil) {
			t.Errorf("at once: %v; in parts of %d bytes: %v", want, size, got)
		}
	})
}
