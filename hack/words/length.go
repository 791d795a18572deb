package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// columns is the maximum length of a line of a comment or of prose.
const columns = 100

// Lines that can't be wrapped: directives, markers and indented blocks of Go comments, and tables,
// comments and links of Markdown.
var (
	fixedComment = regexp.MustCompile(`^//(go:|nolint|\t| \+)`)
	fixedProse   = regexp.MustCompile(`^\s*(\||<)|\]\(|://`)
)

// tooLong returns the comments of a Go file, or the prose of a Markdown page, that exceed columns.
func tooLong(file, text string) []finding {
	wrappable := map[string]func(string) bool{".go": goComments(), ".md": prose()}[filepath.Ext(file)]
	if wrappable == nil {
		return nil
	}
	var all []finding
	for i, line := range strings.Split(text, "\n") {
		if wrappable(line) && utf8.RuneCountInString(line) > columns {
			all = append(all, finding{i + 1, line[:40] + "…", "wrap at 100 columns"})
		}
	}
	return all
}

// goComments returns a function that reports whether a line of a Go file is a comment that can be
// wrapped.
func goComments() func(string) bool {
	return func(line string) bool {
		line = strings.TrimSpace(line)
		return strings.HasPrefix(line, "//") && !fixedComment.MatchString(line)
	}
}

// prose returns a function that reports, for one line of a Markdown page after the other, whether
// it is prose that can be wrapped.
func prose() func(string) bool {
	fenced := false
	return func(line string) bool {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			return false
		}
		return !fenced && !fixedProse.MatchString(line)
	}
}
