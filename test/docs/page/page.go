// Package page reads the parts of a Markdown page that a test can execute: fenced blocks, and
// comments that say how a test treats them. It never runs anything.
//
// Comments are invisible to readers and stand before the block that they are about:
//
//	<!-- test: skip: REASON -->     don't execute the block
//	<!-- test: file NAME -->        write the block to a file, which a later command reads
//	<!-- test: merge FIELD -->      put the block into a field of the page's last manifest
//	<!-- test: exit CODE -->        the last command of the block exits with this code
//	<!-- test: run                  run commands that the page doesn't show
//	COMMANDS
//	-->
//
// Start with Parse.
package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Block is a fenced block of a page, or the commands of a comment.
type Block struct {
	// Line is where the block begins, counted from 1.
	Line int
	// Language is the word after the opening fence.
	Language string
	// Text is what is between the fences.
	Text string
	// Directive is the comment before the block, if it has one.
	Directive Directive
}

// Directive says how a test treats a block.
type Directive struct {
	Name     string
	Argument string
}

// Names of directives.
const (
	Skip  = "skip"
	File  = "file"
	Merge = "merge"
	Exit  = "exit"
	run   = "run"
)

const (
	commentStart = "<!-- test:"
	commentEnd   = "-->"
	fence        = "```"
)

// Parse returns the blocks of a page in their order. It rejects a page whose blocks don't say what
// they are, or whose comments have no block.
func Parse(text string) ([]Block, error) {
	p := &parser{lines: strings.Split(text, "\n")}
	for p.next < len(p.lines) {
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.next, err)
		}
	}
	if p.pending != nil {
		return nil, fmt.Errorf("comment %q is not followed by a block", p.pending.Name)
	}
	return p.blocks, nil
}

type parser struct {
	lines   []string
	next    int
	pending *Directive
	blocks  []Block
}

// step reads one line, or all lines of a block or comment.
func (p *parser) step() error {
	line := strings.TrimSpace(p.lines[p.next])
	indent := strings.Index(p.lines[p.next], line)
	p.next++
	switch {
	case strings.HasPrefix(line, commentStart):
		return p.comment(strings.TrimPrefix(line, commentStart))
	case strings.HasPrefix(line, fence):
		return p.fenced(strings.TrimPrefix(line, fence), indent)
	case line != "" && p.pending != nil:
		return fmt.Errorf("comment %q is followed by text, not by a block", p.pending.Name)
	}
	return nil
}

func (p *parser) comment(line string) error {
	start := p.next
	for !strings.HasSuffix(line, commentEnd) {
		if p.next == len(p.lines) {
			return errors.New("the comment doesn't end")
		}
		line += "\n" + p.lines[p.next]
		p.next++
	}
	d, err := parseDirective(strings.TrimSpace(strings.TrimSuffix(line, commentEnd)))
	if err != nil {
		return err
	}
	if p.pending != nil {
		return fmt.Errorf("comment %q is followed by another comment", p.pending.Name)
	}
	if d.Name == run {
		p.blocks = append(p.blocks, Block{Line: start, Language: "sh", Text: d.Argument + "\n"})
		return nil
	}
	p.pending = &d
	return nil
}

func parseDirective(text string) (Directive, error) {
	end := strings.IndexAny(text, " :\n")
	if end < 0 {
		return Directive{}, fmt.Errorf("comment %q lacks an argument", text)
	}
	d := Directive{Name: text[:end], Argument: strings.TrimSpace(text[end+1:])}
	if !slices.Contains([]string{Skip, File, Merge, Exit, run}, d.Name) {
		return d, fmt.Errorf("unknown comment %q", d.Name)
	}
	if d.Argument == "" {
		return d, fmt.Errorf("comment %q lacks an argument", d.Name)
	}
	return d, nil
}

func (p *parser) fenced(language string, indent int) error {
	b := Block{Line: p.next, Language: language}
	if p.pending != nil {
		b.Directive, p.pending = *p.pending, nil
	}
	if language == "" {
		return errors.New("the block names no language; use text for one that is neither commands nor a manifest")
	}
	for p.next < len(p.lines) {
		line := p.lines[p.next]
		p.next++
		if strings.TrimSpace(line) == fence {
			p.blocks = append(p.blocks, b)
			return nil
		}
		blank := len(line) - len(strings.TrimLeft(line, " "))
		b.Text += line[min(indent, blank):] + "\n"
	}
	return errors.New("the block doesn't end")
}

// Command is a command of a console block, and the output that the page shows.
type Command struct {
	Text string
	Want []string
}

const prompt = "$ "

// Commands returns the commands of a console block. Lines that begin with a prompt are commands,
// which a backslash continues on the next line; others are output.
func (b Block) Commands() ([]Command, error) {
	var out []Command
	continued := false
	for line := range strings.Lines(b.Text) {
		line = strings.TrimSuffix(line, "\n")
		last := len(out) - 1
		switch {
		case continued:
			out[last].Text += "\n" + line
		case strings.HasPrefix(line, prompt):
			out = append(out, Command{Text: strings.TrimPrefix(line, prompt)})
		case last < 0:
			return nil, errors.New("the block begins with output, not with a command")
		default:
			out[last].Want = append(out[last].Want, line)
			continue
		}
		continued = strings.HasSuffix(line, `\`)
	}
	if len(out) == 0 {
		return nil, errors.New("the block has no commands")
	}
	return out, nil
}
