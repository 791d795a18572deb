package gitops

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// rule recognizes a kind of secret in a line. Rules prefer formats with a fixed prefix or length,
// because a check that reports harmless text is switched off soon.
type rule struct {
	what    string
	pattern *regexp.Regexp
	// harmless reports whether the last group of a match is not a secret. It may be nil.
	harmless func(match string) bool
}

var rules = []rule{
	{"private key", regexp.MustCompile(`-{5}BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-{5}`), nil},
	{"encoded private key", regexp.MustCompile(`(LS0tLS1CRUdJTi[A-Za-z0-9+/]{20,})`), isPublic},
	{"age private key", regexp.MustCompile(`AGE-SECRET-KEY-1[0-9A-Z]{50,}`), nil},
	{"GitHub token", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`), nil},
	{"GitLab token", regexp.MustCompile(`\bgl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,}`), nil},
	{"AWS access key", regexp.MustCompile(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b`), isExample},
	{"Slack token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}`), nil},
	{"JSON Web Token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}`), nil},
	{"bearer token", regexp.MustCompile(`(?i)\bauthorization['"]?\s*[:=]\s*['"]?bearer\s+([A-Za-z0-9._~+/-]{20,})`), isPlaceholder},
	{"password in a URL", regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://[^\s/:@'"]+:([^\s/@'"]+)@`), isURLPlaceholder},
}

// matchRules returns the kind of secret in a line, or the empty string.
func matchRules(line string) string {
	for _, r := range rules {
		for _, match := range r.pattern.FindAllStringSubmatch(line, -1) {
			if r.harmless == nil || !r.harmless(match[len(match)-1]) {
				return r.what
			}
		}
	}
	return ""
}

// isPublic reports whether an encoded PEM block is not a private key.
func isPublic(encoded string) bool {
	head, err := base64.RawStdEncoding.DecodeString(encoded[:min(len(encoded), 64)/4*4])
	return err != nil || !strings.Contains(string(head), "PRIVATE KEY")
}

// isExample reports whether an access key is one of AWS's documentation.
func isExample(key string) bool { return strings.HasSuffix(key, "EXAMPLE") }

// Text that stands for a secret: ${TOKEN}, $TOKEN, $(cat token), <token> or {{ .token }}, and in a
// URL also ****, xxx or PASSWORD.
var (
	placeholder    = regexp.MustCompile(`^(?:\$\{[^}]+\}|\$[A-Z_][A-Z0-9_]*|\$\(.*\)|<[^>]+>|\{\{.*\}\})$`)
	urlPlaceholder = regexp.MustCompile(`^(?:\*+|x{3,}|\.{3}|[A-Z]+(?:_[A-Z]+)*)$`)
)

// isPlaceholder reports whether text stands for a secret that is somewhere else.
func isPlaceholder(text string) bool { return placeholder.MatchString(strings.TrimSpace(text)) }

// isURLPlaceholder reports whether the password in a URL is not a real one.
func isURLPlaceholder(text string) bool {
	return isPlaceholder(text) || urlPlaceholder.MatchString(text)
}
