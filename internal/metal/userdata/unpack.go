package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// maxSize bounds what userdata may grow to when it is decompressed.
const maxSize = 32 << 20

var gzipMagic = []byte{0x1f, 0x8b}

// unpack undoes compression and base64, in any order.
func unpack(data []byte) ([]byte, error) {
	for range maxDepth {
		if bytes.HasPrefix(data, gzipMagic) {
			plain, err := gunzip(data)
			if err != nil {
				return nil, fmt.Errorf("decompressing userdata: %w", err)
			}
			data = plain
			continue
		}
		plain, ok := decodeBase64(data)
		if !ok {
			return data, nil
		}
		data = plain
	}
	return nil, errNested
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxSize {
		return nil, fmt.Errorf("larger than %d MiB when decompressed", maxSize>>20)
	}
	return plain, nil
}

// decodeBase64 decodes text that is nothing but base64. All other kinds of userdata start with a
// character that base64 lacks, or have a space early on.
func decodeBase64(data []byte) ([]byte, bool) {
	text := bytes.TrimSpace(data)
	if len(text) < 8 || bytes.ContainsAny(text, "#{}:; \t-_") {
		return nil, false
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), nil), []byte("\r"), nil)
	plain, err := base64.StdEncoding.AppendDecode(nil, text)
	return plain, err == nil
}

// decodeContent undoes the encoding of a file.
func decodeContent(content, encoding string) ([]byte, error) {
	switch strings.ToLower(encoding) {
	case "", "text/plain":
		return []byte(content), nil
	case "b64", "base64":
		return decodeWrapped(content)
	case "gz", "gzip":
		return gunzip([]byte(content))
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		packed, err := decodeWrapped(content)
		if err != nil {
			return nil, err
		}
		return gunzip(packed)
	}
	return nil, fmt.Errorf("unknown encoding %q", encoding)
}

// decodeWrapped decodes base64 with line breaks and indentation.
func decodeWrapped(content string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
}
