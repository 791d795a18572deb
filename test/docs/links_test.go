package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/docs/page"
)

// TestLinksLeadSomewhere checks that links within the repository name a file, and a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, name := range markdown(t) {
		data, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(data)
	}
	for name, text := range texts {
		for _, link := range page.Links(text) {
			if !strings.Contains(link, "://") && !leads(name, link, texts) {
				t.Errorf("%s: link %s leads nowhere", name, link)
			}
		}
	}
}

func leads(from, link string, texts map[string]string) bool {
	target, heading, hasHeading := strings.Cut(link, "#")
	file := from
	if target != "" {
		file = path.Join(path.Dir(from), target)
	}
	if _, err := os.Stat(filepath.Join(repository, file)); err != nil {
		return false
	}
	return !hasHeading || page.Anchors(texts[file])[heading]
}

// markdown returns all pages, relative to the repository.
func markdown(t *testing.T) []string {
	t.Helper()
	root := os.DirFS(repository)
	out, err := fs.Glob(root, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(root, "docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
