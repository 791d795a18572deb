package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	tests := map[string]struct {
		err  error
		code int
		text string
	}{
		"no error":                {nil, 0, ""},
		"an error":                {errors.New("boom"), 1, "drover: boom\n"},
		"wrong usage":             {Usagef("no such flag"), 2, "drover: no such flag\n"},
		"wrong usage, wrapped":    {fmt.Errorf("while starting: %w", Usagef("x")), 2, "drover: while starting: x\n"},
		"all has been said":       {Silent(ExitNotRunning), 3, ""},
		"a code with its message": {&CodeError{Code: 3, Err: errors.New("not running")}, 3, "drover: not running\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Report(&out, tt.err); code != tt.code || out.String() != tt.text {
				t.Errorf("code %d and %q, want %d and %q", code, out.String(), tt.code, tt.text)
			}
		})
	}
}

func TestOutput(t *testing.T) {
	value := struct {
		Name string `json:"name"`
	}{"first"}
	table := func(w io.Writer) error {
		return Table(w, []string{"NAME", "AGE"}, [][]string{{"first\n  and only", "1s"}})
	}
	for format, want := range map[string]string{
		"":     "NAME             AGE\nfirst and only   1s\n",
		"json": "{\n  \"name\": \"first\"\n}\n",
		"yaml": "name: first\n",
	} {
		var out bytes.Buffer
		if err := Output(format).Print(&out, value, table); err != nil || out.String() != want {
			t.Errorf("%q prints %q, %v; want %q", format, out.String(), err, want)
		}
	}
	var o Output
	if err := o.Set("xml"); err == nil || !strings.Contains(err.Error(), "use json or yaml") {
		t.Errorf("got error %v, want one that lists the formats", err)
	}
}
