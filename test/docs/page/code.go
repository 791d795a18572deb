package page

import (
	"regexp"
	"strings"
)

// Code returns the inline code of a page, outside of blocks.
func Code(text string) []string {
	joined := strings.Join(strings.Fields(withoutBlocks(text)), " ")
	var out []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(joined, -1) {
		out = append(out, strings.ReplaceAll(match[1], `\|`, "|"))
	}
	return out
}

// Alternatives expands words such as create|delete: "drover create|delete cluster" becomes two
// commands.
func Alternatives(command string) []string {
	words := strings.Fields(command)
	for i, word := range words {
		if !strings.Contains(strings.Trim(word, "|"), "|") {
			continue
		}
		var out []string
		for _, choice := range strings.Split(word, "|") {
			words[i] = choice
			out = append(out, Alternatives(strings.Join(words, " "))...)
		}
		return out
	}
	return []string{command}
}
