package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/test/docs/page"
)

// ownHomes lists the pages that begin with an empty home directory, and those that continue there.
func ownHomes() [][]string {
	return [][]string{
		localMachines(),
		{"docs/getting-started.md"},
	}
}

// localMachines lists the pages that use the clusters which the README creates. They run Pods.
func localMachines() []string {
	return []string{"README.md", "docs/guides/install-packages.md"}
}

// startPage starts a plane with simulated machines that are ready in half a second. All pages that
// need some plane continue there.
const startPage = "docs/guides/simulate-machines.md"

// TestPagesOnASharedPlane executes the pages that need some plane.
func TestPagesOnASharedPlane(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reading all pages takes minutes")
	}
	own := slices.Concat(ownHomes()...)
	h := newHome(t)
	if !t.Run(startPage, func(t *testing.T) { readShared(t, h, parse(t, startPage)) }) {
		return
	}
	t.Run("docs/examples", func(t *testing.T) { testExamples(t, h) })
	for _, name := range pages(t) {
		blocks := parse(t, name)
		if len(blocks) == 0 || name == startPage || slices.Contains(own, name) {
			continue
		}
		t.Run(name, func(t *testing.T) { readShared(t, h, blocks) })
	}
}

// readShared executes a page and deletes what its commands created.
func readShared(t *testing.T, h *home, blocks []page.Block) {
	t.Helper()
	r := &reader{home: h, session: h.session(t)}
	r.read(t, blocks)
	if r.ran {
		h.sweep(t)
	}
}

// testExamples validates the manifests that pages and benchmarks refer to.
func testExamples(t *testing.T, h *home) {
	const dir = repository + "/docs/examples"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		(&reader{home: h, session: newSession(t, h.env)}).validate(t, string(text))
	}
}

// TestPagesWithTheirOwnPlane executes the pages that start a plane.
func TestPagesWithTheirOwnPlane(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reading all pages takes minutes")
	}
	for _, names := range ownHomes() {
		t.Run(names[0], func(t *testing.T) {
			if slices.Equal(names, localMachines()) && os.Geteuid() != 0 {
				t.Skip("local machines require root")
			}
			h := newHome(t)
			for _, name := range names {
				blocks := parse(t, name)
				t.Run(name, func(t *testing.T) { (&reader{home: h, session: h.session(t)}).read(t, blocks) })
			}
		})
	}
}

// pages returns all pages that readers follow. Pages of the command line are generated, and those
// of decisions and changes are history.
func pages(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(markdown(t), func(name string) bool {
		return name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/cli/") || strings.HasPrefix(name, "docs/design/")
	})
}

func parse(t *testing.T, name string) []page.Block {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := page.Parse(string(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return blocks
}

// reader does what one page says.
type reader struct {
	*session
	home *home
	// manifest is the last complete one of the page.
	manifest map[string]any
	// ran reports whether the page has run a command.
	ran bool
}

// requireTools skips a page that uses a program that is neither Drover's nor part of every system.
func requireTools(t *testing.T, blocks []page.Block) {
	t.Helper()
	for _, tool := range []string{"curl", "jq"} {
		_, err := exec.LookPath(tool)
		if err != nil && slices.ContainsFunc(blocks, func(b page.Block) bool { return b.Runs(tool) }) {
			t.Skipf("the page uses %s, which is not installed", tool)
		}
	}
}

// read executes blocks in order, until one fails.
func (r *reader) read(t *testing.T, blocks []page.Block) {
	requireTools(t, blocks)
	for i, b := range blocks {
		ok := t.Run(fmt.Sprintf("line_%d", b.Line), func(t *testing.T) { r.execute(t, b, blocks[i+1:]) })
		if !ok {
			return
		}
	}
}

// execute does what a block asks for.
func (r *reader) execute(t *testing.T, b page.Block, later []page.Block) {
	action, err := b.Action()
	if err != nil {
		t.Fatal(err)
	}
	if usual := "127.0.0.1:5000"; action != page.Explain && strings.Contains(b.Text, usual) {
		b.Text = strings.ReplaceAll(b.Text, usual, r.home.registry(t))
	}
	switch action {
	case page.Explain:
		t.Skip(b.Directive.Argument)
	case page.Write:
		r.write(t, b, later)
	case page.Complete:
		r.merge(t, b)
	case page.RunEach:
		r.console(t, b)
	case page.RunScript:
		r.command(t, page.Command{Text: b.Text}, 0)
	case page.Validate:
		r.validate(t, b.Text)
	case page.Ignore:
	}
}

// write saves a block for a command that reads it.
func (r *reader) write(t *testing.T, b page.Block, later []page.Block) {
	name := b.Directive.Argument
	if !slices.ContainsFunc(later, func(l page.Block) bool { return strings.Contains(l.Text, name) }) {
		t.Errorf("no later block of the page uses %s", name)
	}
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(b.Text, "apiVersion:") {
		r.validate(t, b.Text)
	}
}

// console runs commands and compares their output with the page, if it shows some.
func (r *reader) console(t *testing.T, b page.Block) {
	commands, err := b.Commands()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range commands {
		code := 0
		if b.Directive.Name == page.Exit && i == len(commands)-1 {
			if code, err = strconv.Atoi(b.Directive.Argument); err != nil {
				t.Fatal(err)
			}
		}
		r.command(t, c, code)
	}
}

func (r *reader) command(t *testing.T, c page.Command, want int) {
	t.Helper()
	r.ran = true
	output, code, err := r.run(t.Context(), c.Text)
	output = strings.ReplaceAll(output, r.home.dir, "/root") // Pages show the home of root.
	if code != want || err != nil {
		t.Fatalf("%s\nexit code %d instead of %d, error %v:\n%s", c.Text, code, want, err, output)
	}
	if len(c.Want) == 0 {
		return
	}
	if err := page.Match(c.Want, output); err != nil {
		t.Errorf("%s\n%v\nAll of the output:\n%s", c.Text, err, output)
	}
}

// validate sends manifests to the plane, which runs all checks and stores nothing.
func (r *reader) validate(t *testing.T, manifests string) {
	t.Helper()
	objects := strings.Split(manifests, "\n---\n")
	r.manifest = nil
	if err := yaml.Unmarshal([]byte(objects[len(objects)-1]), &r.manifest); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.state, "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	out := r.home.must(t, "kubectl apply --dry-run=server -f "+file)
	if !strings.Contains(out, "(server dry run)") {
		t.Errorf("nothing was validated:\n%s", out)
	}
}

// merge puts a part of a manifest into the last one, and validates that.
func (r *reader) merge(t *testing.T, b page.Block) {
	part := map[string]any{}
	if err := yaml.Unmarshal([]byte(b.Text), &part); err != nil {
		t.Fatal(err)
	}
	field, ok := r.manifest[b.Directive.Argument].(map[string]any)
	if !ok {
		t.Fatalf("the page has no manifest with %q before", b.Directive.Argument)
	}
	whole, parts := maps.Clone(r.manifest), maps.Clone(field)
	maps.Copy(parts, part)
	whole[b.Directive.Argument] = parts
	text, err := yaml.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	last := r.manifest
	r.validate(t, string(text))
	r.manifest = last
}
