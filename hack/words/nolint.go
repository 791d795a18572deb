package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// exception is a comment that disables linters for a line. The linter of such comments doesn't
// report those for linters that never run.
var exception = regexp.MustCompile(`//nolint:([a-z0-9,]+)`)

// enabledLinters returns the linters that a configuration file of golangci-lint enables.
func enabledLinters(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		Linters struct{ Enable []string }
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return config.Linters.Enable, nil
}

// uselessExceptions returns the exceptions from linters that are not enabled.
func uselessExceptions(text string, enabled []string) []finding {
	var all []finding
	for i, line := range strings.Split(text, "\n") {
		for _, match := range exception.FindAllStringSubmatch(line, -1) {
			for _, linter := range strings.Split(match[1], ",") {
				if !slices.Contains(enabled, linter) {
					all = append(all, finding{i + 1, match[0], fmt.Sprintf("remove %q, which is not enabled", linter)})
				}
			}
		}
	}
	return all
}
