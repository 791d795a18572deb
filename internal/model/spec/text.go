package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drover-dev/drover/internal/base/text"
)

// maxQuoted bounds how much of a user's text a message quotes.
const maxQuoted = 120

// printable quotes text of a user: on one line of bounded length, without control characters of
// terminals.
func printable(given string) string {
	short := text.TruncateTo(given, maxQuoted)
	if strings.ContainsFunc(short, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(short)
	}
	return short
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// nearest returns the most similar word, or the empty string if none is similar.
func nearest(word string, words []string) string {
	if len(word) > maxQuoted {
		return ""
	}
	best, least := "", 1+min(2, len(word)/3)
	for _, candidate := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
