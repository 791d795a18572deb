package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
)

const (
	// maxSize is what userdata may grow to when it is unpacked.
	maxSize = 32 << 20
	// maxDepth bounds messages in messages.
	maxDepth = 8
)

// Parse reads userdata. Variables are what templates may use.
func Parse(data []byte, variables map[string]any) (Plan, error) {
	p := parser{variables: variables}
	if err := p.part(data, "", 0); err != nil {
		return Plan{}, err
	}
	return p.finish()
}

// parser gathers the parts of userdata.
type parser struct {
	variables map[string]any
	config    request
	scripts   []Script
	notes     []Note
}

// part reads one part; kind is the MIME type that its envelope gives it.
func (p *parser) part(data []byte, kind string, depth int) error {
	if depth > maxDepth {
		return errors.New("userdata is packed into itself too many times")
	}
	data, err := unpack(data)
	if err != nil {
		return err
	}
	text := bytes.TrimLeft(data, "\ufeff\r\n\t ")
	switch {
	case len(text) == 0:
		return nil
	case isMessage(text):
		return p.message(text, depth)
	case template(text):
		return p.template(text, kind, depth)
	case bytes.HasPrefix(text, []byte("#!")):
		p.script(text)
		return nil
	case kind == "text/cloud-config" || firstWord(text) == "#cloud-config":
		return p.cloudConfig(text)
	}
	return p.other(text, kind)
}

// other refuses what a machine can't boot from at all, and notes what is
// merely left out.
func (p *parser) other(text []byte, kind string) error {
	switch word := firstWord(text); {
	case word == "#cloud-boothook" || kind == "text/cloud-boothook":
		_, body, _ := bytes.Cut(text, []byte("\n"))
		p.config.Boot = append(p.config.Boot, Command{Line: string(body)})
		return nil
	case kind == "text/x-shellscript":
		p.script(append([]byte("#!/bin/sh\n"), text...))
		return nil
	case strings.HasPrefix(word, "#include"), word == "#upstart-job", word == "#part-handler", word == "#cloud-config-archive", word == "#cloud-config-jsonp":
		p.note(word, "this kind of userdata is not supported, the part is left out")
		return nil
	case bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text[:min(len(text), 4096)], []byte(`"ignition"`)):
		return errors.New("userdata is an Ignition configuration, which local machines don't understand: use the cloud-config format")
	}
	return fmt.Errorf("userdata starts with %q, which is none of #cloud-config, ## template: jinja, #! or a MIME message", excerpt(text))
}

func (p *parser) note(key, text string) { p.notes = append(p.notes, Note{Key: key, Text: text}) }

func (p *parser) script(text []byte) {
	p.scripts = append(p.scripts, Script{Name: fmt.Sprintf("part-%03d", len(p.scripts)+1), Content: text})
}

// unpack undoes compression and base64, in any order.
func unpack(data []byte) ([]byte, error) {
	for range maxDepth {
		switch {
		case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
			plain, err := gunzip(data)
			if err != nil {
				return nil, fmt.Errorf("unpacking userdata: %w", err)
			}
			data = plain
		default:
			plain, ok := unbase64(data)
			if !ok {
				return data, nil
			}
			data = plain
		}
	}
	return nil, errors.New("userdata is packed into itself too many times")
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
		return nil, fmt.Errorf("it is larger than %d MiB when unpacked", maxSize>>20)
	}
	return plain, nil
}

// unbase64 decodes text that is nothing but base64. All kinds of userdata that
// can be read as they are start with a character that base64 doesn't have, or
// hold a space early on.
func unbase64(data []byte) ([]byte, bool) {
	text := bytes.TrimSpace(data)
	if len(text) < 8 || bytes.ContainsAny(text, "#{}:; \t-_") {
		return nil, false
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), nil), []byte("\r"), nil)
	plain, err := base64.StdEncoding.AppendDecode(nil, text)
	return plain, err == nil
}

func isMessage(text []byte) bool {
	head := strings.ToLower(string(text[:min(len(text), 64)]))
	return strings.HasPrefix(head, "content-type: multipart/") || strings.HasPrefix(head, "mime-version:")
}

// message reads the parts of a MIME message.
func (p *parser) message(text []byte, depth int) error {
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("reading userdata as a MIME message: %w", err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("reading userdata as a MIME message: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		body, err := decodeBody(m.Body, m.Header.Get("Content-Transfer-Encoding"))
		if err != nil {
			return err
		}
		return p.part(body, kind, depth+1)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
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
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err := p.part(body, kind, depth+1); err != nil {
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
	plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(body)), ""))
	if err != nil {
		return nil, fmt.Errorf("decoding a part of userdata: %w", err)
	}
	return plain, nil
}

func firstWord(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	words := bytes.Fields(line)
	if len(words) == 0 {
		return ""
	}
	return string(words[0])
}

// excerpt is the beginning of a text, for an error. It is short, since
// userdata may hold secrets.
func excerpt(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line[:min(len(line), 20)])
}
