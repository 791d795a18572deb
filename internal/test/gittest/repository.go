package gittest

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Branch is the default branch of new repositories.
const Branch = "main"

// Repository is a bare repository of a server.
type Repository struct {
	// Dir is its directory.
	Dir string
	// Name is the path below the root of the server.
	Name string

	t testing.TB
}

// newRepository creates an empty repository.
func newRepository(t testing.TB, root, name string) *Repository {
	t.Helper()
	r := &Repository{Dir: filepath.Join(root, name), Name: name, t: t}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "--quiet", "--bare", "--initial-branch="+Branch, ".")
	r.Git("config", "gc.auto", "0") // It would run in the background, after the test.
	r.Git("config", "receive.autogc", "false")
	return r
}

// Git runs a command in the repository and returns its output.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return Run(r.t, r.Dir, args...)
}

// GitWithInput is Git with a standard input.
func (r *Repository) GitWithInput(input string, args ...string) string {
	r.t.Helper()
	return runWith(r.t, r.Dir, strings.NewReader(input), args...)
}

// Run executes git in a directory, without the configuration of whoever runs the test, and returns
// its output.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return runWith(t, dir, nil, args...)
}

func runWith(t testing.TB, dir string, input io.Reader, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environment(dir), input
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimSpace(out.String())
}

// environment hides the configuration of whoever runs the test.
func environment(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Somebody", "GIT_AUTHOR_EMAIL=somebody@example.com",
		"GIT_COMMITTER_NAME=Somebody", "GIT_COMMITTER_EMAIL=somebody@example.com",
	}
}

// Commit pushes files to a branch, as somebody with a checkout does, and returns the commit. A file
// whose path ends in "*" is executable, one that ends in "@" is a symbolic link.
func (r *Repository) Commit(branch string, files map[string]string) string {
	r.t.Helper()
	dir := r.t.TempDir()
	Run(r.t, dir, "clone", "--quiet", r.Dir, ".")
	if Run(r.t, dir, "ls-remote", "origin", "refs/heads/"+branch) != "" {
		Run(r.t, dir, "checkout", "--quiet", "-B", branch, "origin/"+branch)
	} else {
		Run(r.t, dir, "checkout", "--quiet", "-B", branch)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		r.write(filepath.Join(dir, path), files[path])
	}
	Run(r.t, dir, "add", "--all")
	Run(r.t, dir, "commit", "--quiet", "--allow-empty", "--message", "a change by somebody")
	Run(r.t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	return Run(r.t, dir, "rev-parse", "HEAD")
}

func (r *Repository) write(path, content string) {
	r.t.Helper()
	link, mode := strings.HasSuffix(path, "@"), os.FileMode(0o644)
	if strings.HasSuffix(path, "*") {
		mode = 0o755
	}
	path = strings.TrimRight(path, "@*")
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil && link {
		err = os.Symlink(content, path)
	} else if err == nil {
		err = os.WriteFile(path, []byte(content), mode)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// Tip returns the newest commit of a branch.
func (r *Repository) Tip(branch string) string { return r.Git("rev-parse", "refs/heads/"+branch) }

// Commits returns how many commits a branch has.
func (r *Repository) Commits(branch string) int {
	return len(strings.Fields(r.Git("rev-list", "refs/heads/"+branch)))
}

// Files returns "mode path" for each file of a branch.
func (r *Repository) Files(branch string) []string {
	var files []string
	for line := range strings.Lines(r.Git("ls-tree", "-r", "--full-tree", "refs/heads/"+branch)) {
		about, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files = append(files, strings.Fields(about)[0]+" "+path)
	}
	return files
}

// File returns the content of a file of a branch, without space around it.
func (r *Repository) File(branch, path string) string {
	return r.Git("show", "refs/heads/"+branch+":"+path)
}

// Hook installs a shell script as a hook.
func (r *Repository) Hook(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}
