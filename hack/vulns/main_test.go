package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newDatabase writes a database in the format of Go's own with one vulnerability of the standard
// library's url.Parse.
func newDatabase(t *testing.T, fixed string) string {
	t.Helper()
	events := []map[string]string{{"introduced": "0"}}
	if fixed != "" {
		events = append(events, map[string]string{"fixed": fixed})
	}
	entry := map[string]any{
		"id": "GO-2026-9999", "schema_version": "1.3.1", "modified": "2026-01-01T00:00:00Z",
		"affected": []any{map[string]any{
			"package": map[string]string{"name": "stdlib", "ecosystem": "Go"},
			"ranges":  []any{map[string]any{"type": "SEMVER", "events": events}},
			"ecosystem_specific": map[string]any{
				"imports": []any{map[string]any{"path": "net/url", "symbols": []string{"Parse"}}},
			},
		}},
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "index", "db.json"), map[string]string{"modified": "2026-01-01T00:00:00Z"})
	put(t, filepath.Join(dir, "index", "modules.json"), []any{map[string]any{
		"path": "stdlib", "vulns": []any{map[string]string{"id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z", "fixed": fixed}},
	}})
	put(t, filepath.Join(dir, "ID", "GO-2026-9999.json"), entry)
	return "file://" + dir
}

func put(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	putText(t, path, string(text))
}

func putText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newModule writes a program whose main function has the given body.
func newModule(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	putText(t, filepath.Join(dir, "go.mod"), "module example.com/app\n\ngo 1.26\n")
	putText(t, filepath.Join(dir, "cmd", "app", "main.go"), "package main\n\nimport \"net/url\"\n\nfunc main() {\n\t"+body+"\n}\n")
	return dir
}

func TestCheckFindsReachableVulnerabilitiesWithFix(t *testing.T) {
	tests := []struct {
		name, body, fixed string
		want              string
	}{
		{"called, fixed", `_, _ = url.Parse("x")`, "99.0.0", "GO-2026-9999: example.com/app/cmd/app.main calls net/url.Parse of stdlib@"},
		{"called, not fixed", `_, _ = url.Parse("x")`, "", ""},
		{"not called, fixed", `_ = url.QueryEscape("x")`, "99.0.0", ""},
		{"called, fixed before", `_, _ = url.Parse("x")`, "1.0.0", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := check(t.Context(), scanner{
				dir: newModule(t, tt.body), program: "cmd/app", tools: "../tools/go.mod", database: newDatabase(t, tt.fixed),
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(found, ""); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckReportsAnUnreachableDatabase(t *testing.T) {
	for _, database := range []string{"http://127.0.0.1:1", "file://" + filepath.Join(t.TempDir(), "missing")} {
		_, err := check(t.Context(), scanner{dir: newModule(t, `_, _ = url.Parse("x")`), program: "cmd/app", tools: "../tools/go.mod", database: database})
		if !errors.Is(err, errUnreachable) {
			t.Errorf("with %s: %v", database, err)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name     string
		found    []string
		err      error
		required bool
		want     bool
	}{
		{"nothing found", nil, nil, true, false},
		{"something found", []string{"  GO-1\n"}, nil, false, true},
		{"a failure", nil, errors.New("no"), false, true},
		{"no database", nil, errUnreachable, false, false},
		{"no database, but one is required", nil, errUnreachable, true, true},
	} {
		text, failed := verdict(tt.found, tt.err, tt.required)
		if failed != tt.want || (text == "") != (tt.name == "nothing found") {
			t.Errorf("%s: failed %t with %q, want %t", tt.name, failed, text, tt.want)
		}
	}
}

func TestDescribeNamesEachVulnerabilityOnce(t *testing.T) {
	out := `{"config":{}} {"finding":{"osv":"GO-1","fixed_version":"v2.0.0","trace":[
		{"module":"m","version":"v1.0.0","package":"m/p","function":"Bad"},{"module":"us","package":"us/a","function":"main"}]}}
		{"finding":{"osv":"GO-1","fixed_version":"v2.0.0","trace":[
		{"module":"m","version":"v1.0.0","package":"m/p","function":"Worse"},{"module":"us","package":"us/b","function":"main"}]}}`
	found, err := parse(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	want := "  GO-1: us/a.main calls m/p.Bad of m@v1.0.0; update it to v2.0.0\n"
	if got := strings.Join(describe(found), ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
