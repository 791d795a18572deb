package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/drover-dev/drover/hack/test/events"
	"github.com/drover-dev/drover/hack/test/sandbox"
)

// deps lists, for packages and all that they import, the identity of the compiled code, and for
// programs, which test binaries are, what is in them.
const deps = `{{.ImportPath}}{{"\t"}}{{.BuildID}}{{"\t"}}{{if eq .Name "main"}}{{join .Deps ","}}{{end}}`

// untested compiles packages with the flags of a suite and returns those that have not passed with
// this code and these inputs before. It reports the others.
func (r *run) untested(ctx context.Context, s suite) []string {
	args := slices.Concat([]string{"go", "list", "-test", "-deps", "-export", "-f", deps}, s.compile, s.packages)
	// Packages that don't compile have no identity, and their tests report the error.
	out, _ := r.command(ctx, s.env, args...).Output()
	if r.store == nil || ctx.Err() != nil {
		return s.packages
	}
	keys := keysOf(string(out), r.setting(s))
	var left []string
	for _, p := range s.packages {
		key := keys[p]
		if result, ok := r.store.Find(key); ok && key != "" {
			r.report(result)
			continue
		}
		r.remember(p, key)
		left = append(left, p)
	}
	return left
}

// setting identifies everything besides code and inputs that results depend on.
func (r *run) setting(s suite) string {
	return fmt.Sprint(runtime.Version(), os.Getuid(), r.runner, s.env, s.compile, s.flags)
}

// keysOf returns the identity of the test binary of each package in the output of "go list".
func keysOf(list, setting string) map[string]string {
	ids, binaries := map[string]string{}, map[string]string{}
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 3 {
			continue
		}
		ids[f[0]] = f[1]
		if pkg, ok := strings.CutSuffix(f[0], ".test"); ok {
			binaries[pkg] = f[0] + "," + f[2]
		}
	}
	keys := map[string]string{}
	for pkg, contents := range binaries {
		if key, ok := identity(setting, strings.Split(contents, ","), ids); ok {
			keys[pkg] = key
		}
	}
	return keys
}

// identity returns the digest of a test binary, or false if a part of it did not compile.
func identity(setting string, contents []string, ids map[string]string) (string, bool) {
	h := sha256.New()
	fmt.Fprintln(h, setting)
	for _, path := range contents {
		// The first half of a build ID identifies what was compiled, the second what came out.
		_, id, _ := strings.Cut(ids[path], "/")
		if id == "" && path != "unsafe" {
			return "", false
		}
		fmt.Fprintln(h, path, id)
	}
	return hex.EncodeToString(h.Sum(nil)), true
}

// remember keeps the identity of a package until its tests have ended.
func (r *run) remember(pkg, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]string{}
	}
	r.keys[pkg] = key
}

// save records a package that has passed, for all checkouts. The sandbox leaves the list of what
// the tests have read. If somebody changes files during the run, its identity is not known.
func (r *run) save(result events.Result) {
	r.mu.Lock()
	key := r.keys[result.Package]
	r.mu.Unlock()
	if key == "" || result.Failed || result.Cached || len(result.Tests) == 0 || checkout(r.root) != r.checkout {
		return
	}
	dir := filepath.Join(r.root, short(result.Package))
	log, err := os.ReadFile(r.logOf(dir))
	if err == nil {
		err = r.store.Add(key, result, log, dir)
	}
	if err != nil {
		r.print(fmt.Sprintf("test: the result of %s is not cached: %v\n", short(result.Package), err))
	}
}

// checkout identifies the files of a checkout, or is empty if Git doesn't know them.
func checkout(root string) string {
	h := sha256.New()
	for _, args := range [][]string{{"rev-parse", "HEAD^{tree}"}, {"diff", "HEAD"}, {"ls-files", "--others", "--exclude-standard"}} {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return ""
		}
		_, _ = h.Write(out) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// logOf returns the file where the sandbox lists what the tests in a directory have read.
func (r *run) logOf(dir string) string { return sandbox.LogFile(filepath.Join(r.root, logs), dir) }

// runner identifies this program and the list of data races.
func runner(root string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the running executable: %w", err)
	}
	h := sha256.New()
	for _, file := range []string{self, filepath.Join(root, suppressions)} {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("identifying the test runner: %w", err)
		}
		_, _ = h.Write(data) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
