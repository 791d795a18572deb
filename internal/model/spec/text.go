package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// longest is how much of what somebody wrote is cited.
const longest = 120

// printable makes a citation of foreign text: one line of bounded length, and nothing that a terminal obeys.
func printable(text string) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// nearest returns the word that was probably meant, empty if none is like it.
func nearest(word string, words []string) string {
	if len(word) > longest {
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

// distance is how many letters have to be put in, taken out or changed to get from one word to the other.
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
