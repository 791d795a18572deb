package gitops

import (
	"strings"
	"unicode"

	"github.com/drover-dev/drover/internal/base/text"
)

// maxQuoted bounds how much of a name in a repository a message quotes.
const maxQuoted = 250

// printable returns text of a repository for a terminal or a page: on one line of bounded length,
// without control characters.
func printable(given string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text.TruncateTo(given, maxQuoted))
}
