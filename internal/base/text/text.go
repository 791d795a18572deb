// Package text shortens text for people: messages that are too long, and lists that have too many
// items. Every condition, event and table uses it, so that long values look the same everywhere.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxMessage bounds a condition or event message, in bytes.
const MaxMessage = 1024

const ellipsis = "…"

// Truncate bounds a message to MaxMessage bytes.
func Truncate(message string) string { return TruncateTo(message, MaxMessage) }

// TruncateTo bounds a message to limit bytes, including the ellipsis that marks the cut. It never
// splits a character, and replaces bytes that aren't UTF-8.
func TruncateTo(message string, limit int) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= limit {
		return message
	}
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}

// FirstN lists at most n items and counts the others: "a, b and 3 more".
func FirstN(items []string, n int) string {
	if len(items) <= n {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:n], ", "), len(items)-n)
}

// Clauses lists at most n clauses, which may contain commas, and counts the others: "a: x, y; b: z;
// and 3 more".
func Clauses(clauses []string, n int) string {
	if len(clauses) <= n {
		return strings.Join(clauses, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(clauses[:n], "; "), len(clauses)-n)
}

// Sentence starts a message with a capital letter, as conditions do.
func Sentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	if size == 0 || first == utf8.RuneError {
		return message
	}
	return string(unicode.ToUpper(first)) + message[size:]
}
