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

// list returns the packages to test.
func (r *run) list(ctx context.Context) ([]string, error) {
	return r.packages(ctx, "{{if or .GoFiles .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", r.patterns)
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

// rank returns the place of a package among the slow ones; those that are not slow come last.
func rank(pkg string) int {
	all := slow()
	if at := slices.IndexFunc(all, func(s string) bool { return strings.HasSuffix(pkg, "/"+s) }); at >= 0 {
		return at
	}
	return len(all)
}

// isSlow reports whether a package is known to be slow.
func isSlow(pkg string) bool { return rank(pkg) < len(slow()) }

// isSlowest reports whether a package is the one that determines how long the run takes.
func isSlowest(pkg string) bool { return rank(pkg) == 0 }
