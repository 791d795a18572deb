package ui

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestConfirmAcceptsOnlyYes(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, " yes ": true, "y\n": false, "no\n": false, "": false, "yes please\n": false} {
		var out bytes.Buffer
		got, err := (&IO{In: strings.NewReader(answer), Err: &out}).Confirm("Delete everything?")
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", answer, got, err, want)
		}
		if out.String() != "Delete everything? Type yes to continue: " {
			t.Errorf("asked %q", out.String())
		}
	}
}

// broken is a stream that can't be read.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestConfirmReportsReadErrors(t *testing.T) {
	if _, err := (&IO{In: broken{}, Err: &bytes.Buffer{}}).Confirm("Sure?"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got error %v, want one that contains %q", err, "broken")
	}
}

func TestManifestsSplitsDocuments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "all.yaml")
	const text = "kind: A\n---\n\n---\nkind: B\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{file: `"` + file + `"`, "-": "the standard input"} {
		documents, name, err := (&IO{In: strings.NewReader(text)}).Manifests(from)
		if err != nil || name != want || len(documents) != 2 || !strings.Contains(string(documents[1]), "kind: B") {
			t.Errorf("%s: %d documents of %q, %v", from, len(documents), name, err)
		}
	}
}

func TestManifestsReportsReadErrors(t *testing.T) {
	if _, _, err := (&IO{}).Manifests(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	if _, _, err := (&IO{In: broken{}}).Manifests("-"); err == nil || !strings.Contains(err.Error(), "reading the standard input") {
		t.Errorf("a stream that can't be read: %v", err)
	}
}

func TestOutputFlagCompletesFormats(t *testing.T) {
	var o Output
	cmd := &cobra.Command{Use: "x"}
	o.AddFlag(cmd)
	if err := cmd.ParseFlags([]string{"-o", "yaml"}); err != nil || o != "yaml" || o.String() != "yaml" || o.Type() != "format" {
		t.Errorf("-o yaml: %q, %v", o, err)
	}
	if err := cmd.ParseFlags([]string{"-o", "xml"}); err == nil {
		t.Error("-o xml is accepted")
	}
	complete, ok := cmd.GetFlagCompletionFunc("output")
	if !ok {
		t.Fatal("the formats are not completed")
	}
	if got, _ := complete(cmd, nil, ""); len(got) != 2 {
		t.Errorf("completed %v, want json and yaml", got)
	}
}

func TestSecondsHaveOneDecimal(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.0s", 1540 * time.Millisecond: "1.5s", 2 * time.Minute: "120.0s"} {
		if got := Seconds(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestFitCutsLongLines(t *testing.T) {
	for _, tt := range []struct {
		line  string
		width int
		want  string
	}{
		{"short", 80, "short"},
		{"exactly", 8, "exactly"},
		{"too long", 8, "too lo…"},
		{"ünïcödé", 5, "ünï…"},
		{"x", 0, "…"},
	} {
		if got := fit(tt.line, tt.width); got != tt.want {
			t.Errorf("%q on %d columns is %q, want %q", tt.line, tt.width, got, tt.want)
		}
	}
}
