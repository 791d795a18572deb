package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// patience is how long a command may take on a busy machine before it counts as stuck.
const patience = 10 * time.Minute

// session is a shell with a home and an empty working directory. Variables and the directory last
// from one script to the next.
type session struct {
	dir   string
	state string
	env   []string
}

func newSession(t *testing.T, env []string) *session {
	t.Helper()
	s := &session{dir: t.TempDir(), state: t.TempDir(), env: env}
	if err := os.WriteFile(s.variables(), []byte("cd "+s.dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *session) variables() string { return filepath.Join(s.state, "variables") }

// shell runs a script and saves what the next one continues with.
const shell = `set -eu -o pipefail
. "$STATE/variables"
trap '{ export -p; echo "cd $PWD"; } >"$STATE/variables"' EXIT
eval "$1"`

// run runs a script and returns its output, standard output and errors as a terminal shows them,
// and its exit code.
func (s *session) run(ctx context.Context, script string) (output string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A file, because processes in the background would keep a pipe open.
	out, err := os.CreateTemp(s.state, "output")
	if err != nil {
		return "", 0, err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, "bash", "-c", shell, "bash", script)
	cmd.Dir, cmd.Env = s.dir, slices.Concat(s.env, []string{"STATE=" + s.state})
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	data, readErr := os.ReadFile(out.Name())
	return string(data), cmd.ProcessState.ExitCode(), errors.Join(err, readErr, ctx.Err())
}

func TestASessionKeepsVariablesAndTheDirectory(t *testing.T) {
	t.Parallel()
	s := newSession(t, []string{"PATH=" + os.Getenv("PATH")})
	for _, c := range []struct {
		name, script, output string
		code                 int
	}{
		{"changes", `export WORD="a b"; mkdir sub; cd sub`, "", 0},
		{"are kept", `echo "$WORD"; basename "$PWD"`, "a b\nsub\n", 0},
		{"even by a script that fails", `export WORD=c; false; echo unreachable`, "", 1},
		{"in the next one", `echo "$WORD"`, "c\n", 0},
		{"and errors are part of the output", `echo problem >&2; exit 3`, "problem\n", 3},
		{"a failure in a pipe counts", `false | true`, "", 1},
		{"a process in the background delays nothing", `sleep 0.2 & echo started`, "started\n", 0},
	} {
		output, code, err := s.run(t.Context(), c.script)
		if output != c.output || code != c.code || err != nil {
			t.Errorf("%s: got output %q, code %d and error %v, want %q and %d", c.name, output, code, err, c.output, c.code)
		}
	}
}
