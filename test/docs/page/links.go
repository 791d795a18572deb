package page

import (
	"regexp"
	"strings"
	"unicode"
)

// Links returns the targets of the links of a page, without those in blocks and inline code.
func Links(text string) []string {
	var out []string
	for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(text), -1) {
		out = append(out, match[1])
	}
	return out
}

// Anchors returns the names that links may use for the headings of a page.
func Anchors(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(withoutBlocks(text)) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			out[anchor(heading)] = true
		}
	}
	return out
}

// anchor names a heading as GitHub does: in lower case, with dashes for spaces, without
// punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// prose returns a page without code, and without line breaks, which links may span.
func prose(text string) string {
	joined := strings.Join(strings.Fields(withoutBlocks(text)), " ")
	return regexp.MustCompile("`[^`]*`").ReplaceAllString(joined, "code")
}

func withoutBlocks(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), fence) {
			inside = !inside
		} else if !inside {
			out.WriteString(line)
		}
	}
	return out.String()
}
