package userdata

import (
	"bytes"
	"errors"
	"fmt"
)

// maxDepth bounds messages in messages.
const maxDepth = 8

var errNested = fmt.Errorf("userdata is nested more than %d levels deep", maxDepth)

// Parse reads userdata. Templates may use the variables.
func Parse(data []byte, variables map[string]any) (Plan, error) {
	p := parser{variables: variables}
	if err := p.part(data, "", 0); err != nil {
		return Plan{}, err
	}
	return p.finish(), nil
}

// parser collects the parts of userdata.
type parser struct {
	variables map[string]any
	config    config
	scripts   []Script
	notes     []Note
}

// part reads one part; mimeType is the type that its envelope gives it.
func (p *parser) part(data []byte, mimeType string, depth int) error {
	if depth > maxDepth {
		return errNested
	}
	data, err := unpack(data)
	if err != nil {
		return err
	}
	text := bytes.TrimLeft(data, blank)
	switch partKind(text, mimeType) {
	case empty:
		return nil
	case message:
		return p.message(text, depth)
	case jinja:
		return p.template(text, mimeType, depth)
	case script:
		p.script(text)
	case cloudConfig:
		return p.cloudConfig(text)
	case bootHook:
		_, body, _ := bytes.Cut(text, []byte("\n"))
		p.config.Boot = append(p.config.Boot, Command{Line: string(body)})
	case unsupported:
		p.note(firstWord(text), "skipped: this kind of userdata is not supported")
	case ignition:
		return errors.New("userdata is an Ignition configuration, which is not supported: use the cloud-config format")
	case unknown:
		return errors.New("userdata " + unknownProblem(text))
	}
	return nil
}

func (p *parser) note(key, text string) { p.notes = append(p.notes, Note{Key: key, Text: text}) }

// script adds a script. One whose interpreter only the MIME type implies gets a first line.
func (p *parser) script(text []byte) {
	if !bytes.HasPrefix(text, []byte("#!")) {
		text = append([]byte("#!/bin/sh\n"), text...)
	}
	p.scripts = append(p.scripts, Script{Name: fmt.Sprintf("part-%03d", len(p.scripts)+1), Content: text})
}
