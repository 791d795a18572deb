package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// unit is the input of one run of the go command.
type unit struct {
	label    string
	flags    []string
	packages []string
	// command returns a go command in the unit's module.
	command func(ctx context.Context, args ...string) goCommand
}

// listedPackage is a package of a unit.
type listedPackage struct {
	path string
	// identity is the same for packages that the go command compiles only once.
	identity string
	program  bool
}

// listFormat prints the fields that parseList reads.
const listFormat = `{{.ImportPath}} {{.Name}} {{with .Module}}{{.Path}}@{{.Version}}{{end}}`

// list returns the packages of a unit. The go command downloads modules here if it has to.
func (u unit) list(ctx context.Context, t *Task) ([]listedPackage, error) {
	args := slices.Concat([]string{"list", "-deps", "-f", listFormat}, u.flags, u.packages)
	g := u.command(ctx, args...)
	g.cmd.Env = append(g.cmd.Env, "GOMAXPROCS="+downloads)
	out, err := g.run(func(line string) bool {
		download := strings.HasPrefix(line, "go: downloading ")
		if download {
			t.downloaded()
		}
		return download
	})
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", u.label, err)
	}
	listed := parseList(string(out))
	t.list(listed)
	return listed, nil
}

func parseList(text string) []listedPackage {
	var listed []listedPackage
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		listed = append(listed, listedPackage{
			path: fields[0], program: fields[1] == "main", identity: strings.Join(append(fields[:1:1], fields[2:]...), " "),
		})
	}
	return listed
}

// compile compiles what is missing from the go command's cache, and links the programs into output.
func (u unit) compile(ctx context.Context, t *Task, output string) error {
	t.Doing("Compiling")
	listed, err := u.list(ctx, t)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, l := range listed {
		known[l.path] = true
	}
	args := slices.Concat([]string{"build"}, u.flags, []string{"-v", "-o", output}, u.packages)
	_, err = u.command(ctx, args...).run(func(line string) bool {
		if known[line] {
			t.compiled(line)
		}
		return known[line]
	})
	if err != nil {
		return fmt.Errorf("compiling %s: %w", u.label, err)
	}
	return nil
}
