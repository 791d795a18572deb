package git

import (
	"errors"
	"strings"
	"unicode"

	"github.com/drover-dev/drover/internal/base/text"
)

const (
	// maxSubject is the length at which tools cut subjects, in bytes.
	maxSubject = 72
	maxTrailer = 500
	maxBody    = 16 << 10

	trailerCommand = "Drover-Command"
	trailerPerson  = "Drover-On-Behalf-Of"
)

// Message describes a commit.
type Message struct {
	// Subject is one line. It is cut at 72 bytes.
	Subject string
	// Body explains the change, in any number of lines.
	Body string
	// OnBehalfOf names who requested the change, as the API server or the operating system knows
	// them.
	OnBehalfOf string
	// Command is the command that made the change.
	Command string
}

var errNoSubject = errors.New("a commit message requires a subject")

// render returns the text of the commit. Trailers are the last paragraph; no other field can add
// one, because lines of the body that look like them are indented.
func (m Message) render() (string, error) {
	subject := text.TruncateTo(oneLine(m.Subject), maxSubject)
	if subject == "" {
		return "", errNoSubject
	}
	paragraphs := []string{subject}
	if body := m.body(); body != "" {
		paragraphs = append(paragraphs, body)
	}
	var trailers []string
	for _, t := range []struct{ name, value string }{{trailerCommand, m.Command}, {trailerPerson, m.OnBehalfOf}} {
		if value := text.TruncateTo(oneLine(t.value), maxTrailer); value != "" {
			trailers = append(trailers, t.name+": "+value)
		}
	}
	if trailers != nil {
		paragraphs = append(paragraphs, strings.Join(trailers, "\n"))
	}
	return strings.Join(paragraphs, "\n\n") + "\n", nil
}

// body cleans each line of the body.
func (m Message) body() string {
	var lines []string
	for line := range strings.Lines(m.Body) {
		line = strings.TrimRightFunc(strings.Map(dropControl, line), unicode.IsSpace)
		if looksLikeTrailer(line) {
			line = "    " + line
		}
		lines = append(lines, line)
	}
	return text.TruncateTo(strings.Trim(strings.Join(lines, "\n"), "\n"), maxBody)
}

func looksLikeTrailer(line string) bool {
	line = strings.ToLower(line)
	return strings.HasPrefix(line, strings.ToLower(trailerCommand)) || strings.HasPrefix(line, strings.ToLower(trailerPerson))
}

// oneLine replaces everything that isn't printable by spaces.
func oneLine(value string) string {
	value = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(value, "\uFFFD"))
	return strings.Join(strings.Fields(value), " ")
}

func dropControl(r rune) rune {
	if unicode.IsControl(r) && r != '\t' {
		return -1
	}
	return r
}
