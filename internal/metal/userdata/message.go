package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
)

// message reads the parts of a MIME message.
func (p *parser) message(text []byte, depth int) error {
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("reading userdata as a MIME message: %w", err)
	}
	mimeType, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("reading userdata as a MIME message: %w", err)
	}
	if strings.HasPrefix(mimeType, "multipart/") {
		return p.parts(multipart.NewReader(m.Body, params["boundary"]), depth)
	}
	body, err := decodeBody(m.Body, m.Header.Get("Content-Transfer-Encoding"))
	if err != nil {
		return err
	}
	return p.part(body, mimeType, depth+1)
}

func (p *parser) parts(parts *multipart.Reader, depth int) error {
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading userdata as a MIME message: %w", err)
		}
		body, err := decodeBody(part, part.Header.Get("Content-Transfer-Encoding"))
		if err != nil {
			return err
		}
		mimeType, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err := p.part(body, mimeType, depth+1); err != nil {
			return err
		}
	}
}

func decodeBody(r io.Reader, encoding string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxSize))
	if err != nil {
		return nil, fmt.Errorf("reading a part of userdata: %w", err)
	}
	if !strings.EqualFold(strings.TrimSpace(encoding), "base64") {
		return body, nil
	}
	plain, err := decodeWrapped(string(body))
	if err != nil {
		return nil, fmt.Errorf("decoding a part of userdata: %w", err)
	}
	return plain, nil
}
