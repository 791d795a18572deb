package page

import "testing"

func TestAction(t *testing.T) {
	for name, c := range map[string]struct {
		block Block
		want  Action
	}{
		"commands":             {Block{Language: "console", Text: "$ drover up\n"}, RunEach},
		"commands that fail":   {Block{Language: "console", Directive: Directive{Exit, "1"}}, RunEach},
		"a script":             {Block{Language: "sh"}, RunScript},
		"a manifest":           {Block{Language: "yaml"}, Validate},
		"a part of a manifest": {Block{Language: "yaml", Directive: Directive{Merge, "spec"}}, Complete},
		"a file":               {Block{Language: "yaml", Directive: Directive{File, "a.yaml"}}, Write},
		"a reason":             {Block{Language: "sh", Directive: Directive{Skip, "slow"}}, Explain},
		"a diagram":            {Block{Language: "text", Text: "a ─▶ b costs $ 1\n"}, Ignore},
		"a unit":               {Block{Language: "ini", Text: "[Unit]\n"}, Ignore},
		"hidden in text":       {Block{Language: "text", Text: "$ drover up\n"}, ""},
		"hidden further down":  {Block{Language: "text", Text: "first:\n$ drover up\n"}, ""},
		"another language":     {Block{Language: "bash"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.block.Action()
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q and error %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		block Block
		want  bool
	}{
		"a command":          {Block{Language: "console", Text: "$ jq .id file\n"}, true},
		"within a command":   {Block{Language: "sh", Text: "delete \"$(jq -r .id file)\"\n"}, true},
		"a part of a word":   {Block{Language: "sh", Text: "ejq jq-tool jq_x\n"}, false},
		"not executed":       {Block{Language: "sh", Text: "jq .\n", Directive: Directive{Skip, "slow"}}, false},
		"a manifest":         {Block{Language: "yaml", Text: "jq: 1\n"}, false},
		"an unknown program": {Block{Language: "sh", Text: "drover up\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.block.Runs("jq"); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
