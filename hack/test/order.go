package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed slow.txt
var slowText string

// list returns the packages to test, longest first.
func (r *run) list(ctx context.Context) ([]string, error) {
	packages, err := r.packages(ctx, "{{if or .GoFiles .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", r.patterns)
	return longestFirst(packages, slow()), err
}

// packages returns what a template of "go list" prints for patterns.
func (r *run) packages(ctx context.Context, template string, patterns []string) ([]string, error) {
	cmd := r.command(ctx, "CGO_ENABLED=1", slices.Concat([]string{"go", "list", "-f", template}, patterns)...)
	cmd.Stderr = &locked{r}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// slow returns the slowest packages, slowest first.
func slow() []string {
	var out []string
	for line := range strings.Lines(slowText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// isSlow reports whether a package is known to be slow.
func isSlow(pkg string) bool {
	return slices.ContainsFunc(slow(), func(s string) bool { return strings.HasSuffix(pkg, "/"+s) })
}

// longestFirst sorts known slow packages first, so that none of them runs alone at the end.
func longestFirst(packages, slow []string) []string {
	var first []string
	for _, s := range slow {
		for _, p := range packages {
			if strings.HasSuffix(p, "/"+s) && !slices.Contains(first, p) {
				first = append(first, p)
			}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return slices.Contains(first, p) })
	return append(first, rest...)
}
