package main

import (
	"strings"
	"testing"
)

func TestPhrases(t *testing.T) {
	for text, want := range map[string]int{
		"the bundle is generated again":              0,
		"the bundle is generated anew":               1,
		"There is no cluster of that name":           1,
		"cluster \"x\" not found":                    0,
		"Ann creates a cluster":                      1,
		"annotations and Anna":                       0,
		"Who makes a workload cluster needs a role.": 1,
		"who may see it?":                            0,
		"it is looked at anew\nin the end":           3,
		"what has to be checked":                     0,
	} {
		if got := phrases(text); len(got) != want {
			t.Errorf("%q has %v, want %d findings", text, got, want)
		}
	}
	if got := phrases("fine\nanew")[0]; got.line != 2 || got.instead == "" {
		t.Errorf("got %+v", got)
	}
}

func TestUselessExceptionsNameLintersThatNeverRun(t *testing.T) {
	enabled, err := enabledLinters("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	if len(enabled) < 20 {
		t.Fatalf("only %v are enabled", enabled)
	}
	for text, want := range map[string]int{
		"a() //nolint:gosec // the file is ours":        0,
		"a() //nolint:nilnil // there is none":          1,
		"a() //nolint:gosec,nilnil // the file is ours": 1,
		"a()\nb() //nolint:nosuchlinter":                1,
		"a() // reports nolint":                         0,
	} {
		got := uselessExceptions(text, enabled)
		if len(got) != want {
			t.Errorf("%q has %v, want %d findings", text, got, want)
		}
		for _, f := range got {
			if f.line != 1+strings.Count(text, "\n") {
				t.Errorf("%q has a finding in line %d", text, f.line)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	long := strings.Repeat("word ", 20) + "end" // 103 columns
	for name, test := range map[string]struct {
		file, text string
		line       int
	}{
		"comment":              {"a.go", "package a\n\t// " + long, 2},
		"comment of 100":       {"a.go", "// " + long[:97], 0},
		"code":                 {"a.go", `var a = "` + long + `"`, 0},
		"code with a comment":  {"a.go", "a() // " + long, 0},
		"directive":            {"a.go", "//go:generate " + long, 0},
		"marker":               {"a.go", "// +kubebuilder:" + long, 0},
		"block of a comment":   {"a.go", "//\t" + long, 0},
		"prose":                {"a.md", "# A\n\n" + long, 3},
		"block":                {"a.md", "```console\n$ " + long + "\n```\n", 0},
		"prose after a block":  {"a.md", "```console\n```\n" + long, 3},
		"table":                {"a.md", "| " + long, 0},
		"comment in Markdown":  {"a.md", "<!-- " + long, 0},
		"link":                 {"a.md", "[" + long + "](a.md)", 0},
		"characters not bytes": {"a.md", strings.Repeat("é", 100), 0},
		"another kind of file": {"a.yaml", "# " + long, 0},
	} {
		t.Run(name, func(t *testing.T) {
			line := 0
			for _, f := range check(test.file, test.text) {
				line = f.line
			}
			if line != test.line {
				t.Errorf("found line %d, want %d", line, test.line)
			}
		})
	}
}

func TestAppliesSkipsGeneratedFiles(t *testing.T) {
	for file, want := range map[string]bool{
		"README.md": true, "internal/plane/plane.go": true, "hack/demo.sh": true, "templates/cni.yaml": true,
		"docs/cli/drover.md": false, "config/crd/x.yaml": false, "api/x/zz_generated.deepcopy.go": false,
		"go.sum": false, "hack/words/rules.go": false,
	} {
		if got := applies(file); got != want {
			t.Errorf("%s: got %t, want %t", file, got, want)
		}
	}
}
