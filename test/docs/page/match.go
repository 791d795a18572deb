package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ellipsis stands for any text within a line, and for any number of lines if it is alone on one.
const ellipsis = "…"

// Match compares the output that a page shows with that of a command. Runs of blanks are equal, and
// so are two durations, times, sizes, addresses, IDs or digests. The error shows the first line
// that is missing.
func Match(want []string, got string) error {
	rest := lines(got)
	anywhere := false // Lines may be skipped before the next one.
	for _, line := range trimmed(want) {
		if line == ellipsis {
			anywhere = true
			continue
		}
		candidates := rest
		if !anywhere {
			candidates = rest[:min(1, len(rest))]
		}
		n := find(line, candidates)
		if n < 0 {
			return fmt.Errorf("the page shows\n\t%s\nbut the output continues with\n\t%s", line, strings.Join(rest, "\n\t"))
		}
		rest, anywhere = rest[n+1:], false
	}
	if len(rest) > 0 && !anywhere {
		return fmt.Errorf("the page doesn't show the last lines of output:\n\t%s", strings.Join(rest, "\n\t"))
	}
	return nil
}

// find returns the index of the first line that matches one of a page, or -1.
func find(line string, in []string) int {
	pattern := expression(line)
	return slices.IndexFunc(in, func(l string) bool { return pattern.MatchString(normalize(l)) })
}

func expression(line string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(normalize(line))
	return regexp.MustCompile("^" + strings.ReplaceAll(quoted, ellipsis, ".*") + "$")
}

func lines(output string) []string {
	return trimmed(strings.Split(output, "\n"))
}

// trimmed leaves out blank lines, which pages need for readability and output for terminals.
func trimmed(in []string) []string {
	var out []string
	for _, line := range in {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// variable describes text that differs from run to run.
type variable struct {
	pattern *regexp.Regexp
	name    string
}

// variables are in the order in which they are replaced: longer ones first.
func variables() []variable {
	return []variable{
		{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<id>"},
		{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "<digest>"},
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?`), "<time>"},
		{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+(:\d+)?\b`), "<address>"},
		{regexp.MustCompile(`\b\d+(\.\d+)? (B|KiB|MiB|GiB)\b`), "<size>"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|d|h|m|s))+\b`), "<duration>"},
		{regexp.MustCompile(`\s+`), " "},
	}
}

// normalize replaces the text of a line that differs from run to run.
func normalize(line string) string {
	for _, v := range variables() {
		line = v.pattern.ReplaceAllString(line, v.name)
	}
	return line
}
