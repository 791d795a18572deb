package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Block
	}{
		"a block":        {"# Title\n\n```sh\ndrover up\n```\n", []Block{{Line: 3, Language: "sh", Text: "drover up\n"}}},
		"an empty block": {"```text\n```", []Block{{Line: 1, Language: "text"}}},
		"a block in a list": {
			"- item\n\n  ```yaml\n  a:\n    b: c\n\n  ```\n", []Block{{Line: 3, Language: "yaml", Text: "a:\n  b: c\n\n"}},
		},
		"a reason to skip a block": {
			"<!-- test: skip: compiles Kubernetes: slow -->\n```sh\nmake\n```\n",
			[]Block{{Line: 2, Language: "sh", Text: "make\n", Directive: Directive{Skip, "compiles Kubernetes: slow"}}},
		},
		"a blank line after a comment": {
			"<!-- test: file a.yaml -->\n\n```yaml\na: b\n```\n",
			[]Block{{Line: 3, Language: "yaml", Text: "a: b\n", Directive: Directive{File, "a.yaml"}}},
		},
		"hidden commands": {
			"text\n<!-- test: run\ndrover up\ndrover status\n-->\nmore\n",
			[]Block{{Line: 2, Language: "sh", Text: "drover up\ndrover status\n"}},
		},
		"other comments and inline code": {"<!-- note -->\nuse `drover up`\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a block without a language":   {"text\n```\ndrover up\n```\n", "line 2: the block names no language"},
		"a block without an end":       {"```sh\ndrover up\n", "the block doesn't end"},
		"a comment without an end":     {"<!-- test: run\ndrover up\n", "the comment doesn't end"},
		"an unknown comment":           {"<!-- test: ignore this -->\n```sh\n```\n", `line 1: unknown comment "ignore"`},
		"a skipped block, no reason":   {"<!-- test: skip: -->\n```sh\n```\n", `comment "skip" lacks an argument`},
		"a comment without arguments":  {"<!-- test: skip -->\n```sh\n```\n", `comment "skip" lacks an argument`},
		"a comment before text":        {"<!-- test: exit 1 -->\ntext\n```sh\n```\n", "line 2: comment \"exit\" is followed by text"},
		"a comment before another one": {"<!-- test: exit 1 -->\n<!-- test: exit 2 -->\n```sh\n```\n", "followed by another comment"},
		"a comment at the end":         {"<!-- test: exit 1 -->\n", "is not followed by a block"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	b := Block{Text: "$ drover up\nready\n\n  after 5 s\n$ drover generate \\\n    one > one.yaml\n$ drover status\nok\n"}
	want := []Command{
		{Text: "drover up", Want: []string{"ready", "", "  after 5 s"}},
		{Text: "drover generate \\\n    one > one.yaml"},
		{Text: "drover status", Want: []string{"ok"}},
	}
	got, err := b.Commands()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestCommandsRejects(t *testing.T) {
	for name, text := range map[string]string{"output first": "ready\n$ drover up\n", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			if got, err := (Block{Text: text}).Commands(); err == nil {
				t.Errorf("got commands %v, want an error", got)
			}
		})
	}
}
