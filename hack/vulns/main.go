// Command vulns fails if Drover can reach a known vulnerability that an update fixes. It runs
// govulncheck twice: on modules, which takes seconds and usually settles it, and on calls only if a
// module is affected.
//
//	go run ./hack/vulns
//
// The database comes from GOVULNDB, such as file:///srv/vulndb; if it can't be reached, the command
// says so and passes, because builds work without the internet. With VULNS=required it fails then.
//
// It doesn't scan the modules in kube, which pin Kubernetes: following all calls in them takes
// longer than building them.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := flag.String("C", ".", "directory of the module")
	program := flag.String("program", "cmd/drover", "a package of the module; govulncheck needs one to find the module's requirements")
	tools := flag.String("tools", "hack/tools/go.mod", "module file that pins govulncheck")
	database := flag.String("db", "", "address of the database (default: GOVULNDB, or Go's own)")
	flag.Parse()
	found, err := check(ctx, scanner{dir: *dir, program: *program, tools: *tools, database: *database})
	text, failed := verdict(found, err, os.Getenv("VULNS") == "required")
	if text != "" {
		fmt.Fprintln(os.Stderr, "vulns:", text)
	}
	if failed {
		os.Exit(1)
	}
}

// verdict returns what to print, and whether the command fails.
func verdict(found []string, err error, required bool) (text string, failed bool) {
	switch {
	case errors.Is(err, errUnreachable):
		return "NOT CHECKED: " + err.Error(), required
	case err != nil:
		return err.Error(), true
	case len(found) > 0:
		return fmt.Sprintf("%d reachable vulnerabilities have a fix:\n%s", len(found), strings.Join(found, "")), true
	default:
		return "", false
	}
}

// errUnreachable means that there is no database to compare with.
var errUnreachable = errors.New("the database of vulnerabilities can't be reached; set GOVULNDB to a copy")

// scanner runs govulncheck on one module.
type scanner struct {
	dir      string
	program  string
	tools    string
	database string
}

// check returns one line per vulnerability that is reachable and has a fix.
func check(ctx context.Context, s scanner) ([]string, error) {
	affected, err := s.scan(ctx, filepath.Join(s.dir, s.program), "module")
	if err != nil || len(fixable(affected)) == 0 {
		return nil, err
	}
	called, err := s.scan(ctx, s.dir, "symbol", "./...")
	if err != nil {
		return nil, err
	}
	return describe(slices.DeleteFunc(fixable(called), func(f finding) bool { return !f.called() })), nil
}

// scan returns the findings at a level: module, package or symbol.
func (s scanner) scan(ctx context.Context, dir, level string, packages ...string) ([]finding, error) {
	tool, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-C", dir, "-json", "-scan", level}
	if s.database != "" {
		args = append(args, "-db", s.database)
	}
	cmd := exec.CommandContext(ctx, tool, append(args, packages...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, explain(err, errs.String())
	}
	return parse(&out)
}

// find returns the path of govulncheck in Go's cache.
func (s scanner) find(ctx context.Context) (string, error) {
	file, err := filepath.Abs(s.tools)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+file, "-n", "govulncheck")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building govulncheck: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// explain distinguishes a database that can't be reached from other failures.
func explain(err error, text string) error {
	if strings.Contains(text, "fetching vulnerabilities") || strings.Contains(text, "creating client") {
		return errUnreachable
	}
	return fmt.Errorf("running govulncheck: %w\n%s", err, text)
}

// message is one of govulncheck's JSON messages; others are ignored.
type message struct {
	Finding *finding `json:"finding"`
}

// finding is a vulnerability in a module, in a package or in a function that is called.
type finding struct {
	ID    string  `json:"osv"`
	Fixed string  `json:"fixed_version"`
	Trace []frame `json:"trace"`
}

type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"`
}

// called reports whether the vulnerable function is reachable.
func (f finding) called() bool { return len(f.Trace) > 0 && f.Trace[0].Function != "" }

func parse(r io.Reader) ([]finding, error) {
	var found []finding
	for d := json.NewDecoder(r); ; {
		var m message
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output of govulncheck: %w", err)
		}
		if m.Finding != nil {
			found = append(found, *m.Finding)
		}
	}
}

func fixable(found []finding) []finding {
	return slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.Fixed == "" })
}

// describe returns one line per vulnerability, which may have many findings.
func describe(found []finding) []string {
	var lines []string
	for _, f := range found {
		bad, caller := f.Trace[0], f.Trace[len(f.Trace)-1]
		line := fmt.Sprintf("  %s: %s.%s calls %s.%s of %s@%s; update it to %s\n",
			f.ID, caller.Package, caller.Function, bad.Package, bad.Function, bad.Module, bad.Version, f.Fixed)
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  "+f.ID+":") }) {
			lines = append(lines, line)
		}
	}
	return lines
}
