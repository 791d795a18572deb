package bundle

import "testing"

func TestExcludesMustBePaths(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		".spec":                             true,
		".spec.packages[].source.registry":  true,
		`.metadata.labels["a/b"]`:           true,
		`.["spec"]`:                         true,
		".spec.packages[0].source":          true,
		".spec.packages[1:2]":               true,
		".spec.packages[]?.source":          true,
		".":                                 false,
		"..":                                false,
		"":                                  false,
		"spec":                              false,
		"env":                               false,
		"input":                             false,
		".a | .b":                           false,
		".a, .b":                            false,
		".a[env.HOME]":                      false,
		".a[.b]":                            false,
		`.a["\(env)"]`:                      false,
		`."\(1)"`:                           false,
		"def f: .a; f":                      false,
		`import "a" as a; .a`:               false,
		"if .a then .b else .c end":         false,
		"$ENV.a":                            false,
		".a as $x | .b":                     false,
		"[.a]":                              false,
		".a)":                               false,
		".a) | (.b":                         false,
		"reduce .[] as $x (0; . + $x)":      false,
		".spec.packages[][range(0; 10000)]": false,
	}
	for path, want := range tests {
		if got := isPath(path); got != want {
			t.Errorf("%q: a path: got %t, want %t", path, got, want)
		}
	}
}

func TestTooManyExcludesAreRejected(t *testing.T) {
	t.Parallel()
	paths := make([]string, maxExcludes+1)
	for i := range paths {
		paths[i] = ".spec"
	}
	if _, err := parseExcludes(EncodeExcludes(paths)); err == nil {
		t.Error("they were taken")
	}
	if got, err := parseExcludes(EncodeExcludes(paths[1:])); err != nil || len(got) != maxExcludes {
		t.Errorf("one less: %d, %v", len(got), err)
	}
}
