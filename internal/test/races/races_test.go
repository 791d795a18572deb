package races

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// entry is one suppression with the comment above it.
type entry struct {
	comment []string
	pattern string
}

func entries(t *testing.T, text string) []entry {
	t.Helper()
	var out []entry
	var comment []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			comment = nil
		case strings.HasPrefix(line, "#"):
			comment = append(comment, strings.TrimSpace(strings.TrimPrefix(line, "#")))
		default:
			out = append(out, entry{comment, line})
		}
	}
	return out
}

// problem is what is wrong with an entry, if anything.
func problem(e entry) string {
	if len(e.comment) < 2 {
		return "has no comment with the code it covers and what races there"
	}
	f := strings.Fields(e.comment[0])
	if len(f) != 2 {
		return "does not cite a file and a function: " + e.comment[0]
	}
	file, function := f[0], f[1]
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", filepath.Dir(file)).Output()
	if err != nil {
		return "finding the package of " + file + ": " + err.Error()
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), filepath.Base(file)))
	switch {
	case err != nil:
		return err.Error()
	case strings.Contains(e.pattern, "drover-dev/drover"):
		return "covers our own code"
	case !strings.Contains(string(source), ") "+function+"(") && !strings.Contains(string(source), "func "+function+"("):
		return "cites a function that " + file + " does not have"
	case !strings.HasPrefix(e.pattern, "race:"+filepath.Dir(file)+".") || !strings.HasSuffix(e.pattern, "."+function):
		return "covers more or other code than it cites"
	}
	return ""
}

func TestEverySuppressionCitesTheUpstreamCodeItCovers(t *testing.T) {
	all := entries(t, string(list))
	if len(all) == 0 {
		t.Fatal("no entries found")
	}
	for _, e := range all {
		if p := problem(e); p != "" {
			t.Errorf("%s: %s", e.pattern, p)
		}
	}
}

func TestInvalidSuppressionsAreReported(t *testing.T) {
	const good = "# k8s.io/client-go/rest/request.go Do\n# Why.\n"
	for name, c := range map[string]struct{ text, want string }{
		"a good one":                 {good + "race:k8s.io/client-go/rest.(*Request).Do", ""},
		"no comment":                 {"race:k8s.io/client-go/rest.(*Request).Do", "has no comment"},
		"all of a package":           {good + "race:k8s.io/client-go/rest", "covers more"},
		"a function that is gone":    {"# k8s.io/client-go/rest/request.go Gone\n# Why.\nrace:k8s.io/client-go/rest.Gone", "does not have"},
		"our own code":               {good + "race:github.com/drover-dev/drover/internal/plane.Do", "our own"},
		"no file and function cited": {"# Why\n# not.\nrace:k8s.io/client-go/rest.Do", "does not cite"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problem(entries(t, c.text)[0])
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSuppressRemovesTheList(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(variable, "")
	forget, err := Suppress()
	if err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(os.Getenv(variable), "suppressions=")
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, list) {
		t.Errorf("reading the list that the variable names: %v", err)
	}
	forget()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("got leftovers %v, want none", left)
	}
}
