package bundle

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/itchyny/gojq"
)

// DefaultExcludes let a mirror change the location of charts without invalidating the signature.
// The digests of charts stay signed.
var DefaultExcludes = []string{".spec.packages[].source.registry", ".spec.packages[].source.repository"}

// maxExcludes limits the work that an unsigned bundle can cause.
const maxExcludes = 128

var errSelectors = errors.New("invalid selector(s) provided")

// EncodeExcludes returns the value of the annotation for paths.
func EncodeExcludes(paths []string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Join(paths, "\n") + "\n"))
}

// parseExcludes returns the paths in the annotation. It rejects other jq expressions.
func parseExcludes(annotation string) ([]string, error) {
	text, err := base64.StdEncoding.DecodeString(annotation)
	if err != nil {
		return nil, errSelectors
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !isPath(line) || len(paths) == maxExcludes {
			return nil, errSelectors
		}
		paths = append(paths, line)
	}
	return paths, nil
}

// isPath reports whether a jq expression is a plain path such as .a.b[].c["d"][0].
func isPath(text string) bool {
	query, err := gojq.Parse(text)
	if err != nil || query.Meta != nil || len(query.Imports) > 0 || len(query.FuncDefs) > 0 || query.Term == nil {
		return false
	}
	if query.Term.Type != gojq.TermTypeIndex || !isConstant(query.Term.Index) {
		return false
	}
	for _, suffix := range query.Term.SuffixList {
		if suffix.Index != nil && !isConstant(suffix.Index) {
			return false
		}
	}
	return true
}

func isConstant(index *gojq.Index) bool {
	if index.Str != nil && len(index.Str.Queries) > 0 {
		return false
	}
	for _, bound := range []*gojq.Query{index.Start, index.End} {
		if bound != nil && !isLiteral(bound) {
			return false
		}
	}
	return true
}

func isLiteral(query *gojq.Query) bool {
	term := query.Term
	if term == nil || len(query.FuncDefs) > 0 || len(term.SuffixList) > 0 {
		return false
	}
	switch term.Type {
	case gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString:
		return len(term.Str.Queries) == 0
	default:
		return false
	}
}

// remove deletes the fields at the paths.
func remove(content map[string]any, paths []string) (map[string]any, error) {
	if len(paths) == 0 {
		return content, nil
	}
	query, err := gojq.Parse("del(" + strings.Join(paths, ", ") + ")")
	if err != nil {
		return nil, errSelectors
	}
	result, ok := query.Run(content).Next()
	if !ok {
		return nil, errSelectors
	}
	if left, ok := result.(map[string]any); ok {
		return left, nil
	}
	return nil, errSelectors // the result is an error, such as iterating over a string
}
