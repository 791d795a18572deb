package git

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestUpdateStartsAnEmptyRepository(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*gittest.Repository, Remote){
		"https": func(t *testing.T) (*gittest.Repository, Remote) { _, r, remote := overHTTPS(t); return r, remote },
		"ssh": func(t *testing.T) (*gittest.Repository, Remote) {
			_, r, remote := overSSH(t, "ed25519", "")
			return r, remote
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository, remote := start(t)
			r := open(t, remote, Options{})
			tip, err := r.Tip(t.Context())
			if err != nil || tip.Commit != "" || !tip.Empty || len(contents(t, tip.FS())) > 0 {
				t.Fatalf("tip %+v, error %v", tip, err)
			}
			if id, err := r.TipID(t.Context()); id != "" || err != nil {
				t.Errorf("TipID %q, error %v", id, err)
			}
			if result := mustUpdate(t, r, set(nil)); result.Changed || result.Commit != "" {
				t.Errorf("an update without changes: %+v", result)
			}
			result := mustUpdate(t, r, set(map[string]string{"a/b.yaml": "b\n"}))
			if result.Commit != repository.Tip(gittest.Branch) || repository.Commits(gittest.Branch) != 1 {
				t.Errorf("result %+v", result)
			}
		})
	}
}

func TestUpdateStartsAMissingBranchFromTheDefaultBranch(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	first := repository.Commit(gittest.Branch, map[string]string{"README": "hello\n"})
	remote.Branch = "feature/a/b"
	r := open(t, remote, Options{})
	tip, err := r.Tip(t.Context())
	if err != nil || tip.Commit != "" || tip.Empty {
		t.Fatalf("tip %+v, error %v", tip, err)
	}
	if diff := cmp.Diff(map[string]string{"README": "hello\n"}, contents(t, tip.FS())); diff != "" {
		t.Error(diff)
	}
	mustUpdate(t, r, set(map[string]string{"new": "n\n"}))
	if parent := repository.Git("rev-parse", "feature/a/b^"); parent != first {
		t.Errorf("parent %s, want %s", parent, first)
	}
	if got := repository.Tip(gittest.Branch); got != first {
		t.Errorf("the default branch moved to %s", got)
	}
}

func TestUpdateChangesOnlyWhatTheEditReturns(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{
		"run.sh*": "#!/bin/sh\n", "other.sh*": "#!/bin/sh\n", "link@": "run.sh",
		"a/keep": "# a comment\n", "a.b/keep": "k\n", "a/gone": "g\n", "old/deep/gone": "g\n",
	})
	before := repository.Git("ls-tree", "-r", gittest.Branch, "other.sh", "link", "a/keep", "a.b/keep")
	r := open(t, remote, Options{})
	mustUpdate(t, r, func(fs.FS) (map[string][]byte, error) {
		return map[string][]byte{
			"run.sh": []byte("#!/bin/sh\nexit 0\n"), "a/gone": nil, "old/deep/gone": nil, "never": nil, "never/was": nil, "new/x/y": []byte("y\n"), "blank": {},
		}, nil
	})
	want := []string{"100644 a.b/keep", "100644 a/keep", "100644 blank", "120000 link", "100644 new/x/y", "100755 other.sh", "100755 run.sh"}
	if diff := cmp.Diff(want, repository.Files(gittest.Branch)); diff != "" {
		t.Error(diff)
	}
	if after := repository.Git("ls-tree", "-r", gittest.Branch, "other.sh", "link", "a/keep", "a.b/keep"); after != before {
		t.Errorf("other files changed:\n%s\n%s", before, after)
	}
	repository.Git("fsck", "--strict")
	commits := repository.Commits(gittest.Branch)
	if result := mustUpdate(t, r, set(map[string]string{"a/keep": "# a comment\n"})); result.Changed || result.Commit != repository.Tip(gittest.Branch) {
		t.Errorf("an update that changes nothing: %+v", result)
	}
	if now := repository.Commits(gittest.Branch); now != commits {
		t.Errorf("%d commits, then %d", commits, now)
	}
}

func TestUpdateCanRemoveTheLastFile(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"a/b": "b"})
	mustUpdate(t, open(t, remote, Options{}), func(fs.FS) (map[string][]byte, error) { return map[string][]byte{"a/b": nil}, nil })
	if files := repository.Files(gittest.Branch); len(files) > 0 {
		t.Errorf("files %v", files)
	}
}

func TestEditsThatCannotBeAppliedChangeNothing(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	tip := repository.Commit(gittest.Branch, map[string]string{"dir/file": "f", "link@": "dir", "top": "t"})
	r := open(t, remote, Options{Limits: Limits{File: 100}})
	for name, files := range map[string]map[string]string{
		"parent directory": {"../x": ""}, "nested parent": {"a/../../x": ""}, "absolute": {"/etc/passwd": ""}, "root": {".": ""},
		"empty": {"": ""}, "trailing slash": {"a/": ""}, "git": {".git/config": ""}, "git in any case": {"a/.GIT/hooks/x": ""},
		"short name of git": {"git~1/config": ""}, "dots after git": {".git. ./x": ""}, "backslash": {`a\..\x`: ""}, "newline": {"a\nb": ""},
		"over a directory": {"dir": "x"}, "below a file": {"top/x": "x"}, "through a link": {"link/x": "x"}, "over a link": {"link": "x"},
		"a file and a directory": {"new": "x", "new/y": "y"}, "a large file": {"large": strings.Repeat("x", 101)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Update(t.Context(), Message{Subject: "x"}, set(files))
			if err == nil || repository.Tip(gittest.Branch) != tip {
				t.Errorf("error %v, tip %s", err, repository.Tip(gittest.Branch))
			}
		})
	}
	broken := errors.New("broken")
	if _, err := r.Update(t.Context(), Message{Subject: "x"}, func(fs.FS) (map[string][]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestSnapshotIsAFileSystem(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"a/b/c": "c", "a.txt": "a", "run*": "r", "link@": "a.txt", "escape@": "/etc/passwd", "z": ""})
	submodule := repository.Git("rev-parse", gittest.Branch)
	dir := t.TempDir()
	clone := func(args ...string) { t.Helper(); gittest.Run(t, dir, args...) }
	clone("clone", "--quiet", repository.Dir, ".")
	clone("update-index", "--add", "--cacheinfo", "160000,"+submodule+",vendored")
	clone("commit", "--quiet", "--message", "add a submodule")
	clone("push", "--quiet", "origin", gittest.Branch)
	tip, err := open(t, remote, Options{}).Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(tip.FS(), "a/b/c", "a.txt", "run", "z"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a/b/c": "c", "a.txt": "a", "run": "r", "z": ""}, contents(t, tip.FS())); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"link", "escape", "vendored", "a.txt/x", "../x", "/a.txt"} {
		if _, err := tip.FS().Open(name); err == nil {
			t.Errorf("opened %q", name)
		}
	}
}

func TestConcurrentWritersLandExactlyOnce(t *testing.T) {
	const writers = 8
	_, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"log": "begin\n"})
	var all sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		r := open(t, remote, Options{Attempts: 50})
		all.Go(func() {
			_, errs[i] = r.Update(t.Context(), Message{Subject: "Add a line"}, appendLine("log", fmt.Sprint("writer ", i)))
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(repository.File(gittest.Branch, "log"), "\n")
	slices.Sort(lines[1:])
	want := []string{"begin"}
	for i := range writers {
		want = append(want, fmt.Sprint("writer ", i))
	}
	if diff := cmp.Diff(want, lines); diff != "" || repository.Commits(gittest.Branch) != writers+1 {
		t.Errorf("%d commits: %s", repository.Commits(gittest.Branch), diff)
	}
}

func TestALostAnswerDoesNotCommitTwice(t *testing.T) {
	for name, others := range map[string]int{"at the tip": 0, "below commits of others": 3} {
		t.Run(name, func(t *testing.T) {
			server, repository, remote := overHTTPS(t)
			repository.Commit(gittest.Branch, map[string]string{"log": "begin\n"})
			lost := 0
			server.Inject(gittest.LosePush(func() {
				lost++
				for i := range others {
					repository.Commit(gittest.Branch, map[string]string{"other": fmt.Sprint(i)})
				}
			}))
			result := mustUpdate(t, open(t, remote, Options{}), appendLine("log", "once"))
			if lost != 1 || !result.Changed || result.Attempts != 1 {
				t.Errorf("lost %d answers, result %+v", lost, result)
			}
			if got := repository.File(gittest.Branch, "log"); got != "begin\nonce" || repository.Commits(gittest.Branch) != 2+others {
				t.Errorf("%d commits, file %q", repository.Commits(gittest.Branch), got)
			}
		})
	}
}

func TestAServerThatDiesDuringAPushLeavesTheOutcomeOpen(t *testing.T) {
	server, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"log": "begin\n"})
	server.Inject(gittest.LosePush(func() { server.Inject(respond(http.StatusServiceUnavailable, "")) }))
	_, err := open(t, remote, Options{}).Update(t.Context(), Message{Subject: "x"}, appendLine("log", "once"))
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Commit != repository.Tip(gittest.Branch) || !strings.Contains(err.Error(), "may have arrived") {
		t.Errorf("error %T %v", err, err)
	}
}

// beforePush calls f before each of the first n pushes reaches the server.
func beforePush(n int, f func()) gittest.Fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if gittest.IsPush(r) && n > 0 {
			n--
			f()
		}
		server.ServeHTTP(w, r)
	}
}

func TestUpdateFollowsABranchThatMoves(t *testing.T) {
	for name, move := range map[string]func(*gittest.Repository){
		"by a push": func(r *gittest.Repository) { r.Commit(gittest.Branch, map[string]string{"log": "begin\nother\n"}) },
		"by a force push": func(r *gittest.Repository) {
			r.Git("update-ref", "refs/heads/"+gittest.Branch, r.Git("commit-tree", "-m", "rewritten", gittest.Branch+"^{tree}"))
		},
		"by a deletion": func(r *gittest.Repository) {
			r.Git("branch", "--force", "spare", gittest.Branch)
			r.Git("symbolic-ref", "HEAD", "refs/heads/spare")
			r.Git("update-ref", "-d", "refs/heads/"+gittest.Branch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, repository, remote := overHTTPS(t)
			repository.Commit(gittest.Branch, map[string]string{"log": "begin\n"})
			repository.Git("config", "receive.denyNonFastForwards", "true")
			server.Inject(beforePush(1, func() { move(repository) }))
			result := mustUpdate(t, open(t, remote, Options{}), appendLine("log", "mine"))
			got := repository.File(gittest.Branch, "log")
			if result.Attempts != 2 || strings.Count(got, "mine") != 1 || !strings.HasPrefix(got, "begin") {
				t.Errorf("result %+v, file %q", result, got)
			}
		})
	}
}

func TestEndlessConflictsEnd(t *testing.T) {
	server, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"log": "begin\n"})
	n := 0
	server.Inject(beforePush(100, func() { n++; repository.Commit(gittest.Branch, map[string]string{"other": fmt.Sprint(n)}) }))
	_, err := open(t, remote, Options{Attempts: 3}).Update(t.Context(), Message{Subject: "x"}, appendLine("log", "mine"))
	var conflict *ConflictError
	if !errors.As(err, &conflict) || conflict.Attempts != 3 || conflict.Branch != gittest.Branch || n != 3 {
		t.Errorf("error %T %v after %d pushes", err, err, n)
	}
}

func TestRejectionsNameTheBranchAndWhatTheServerSaid(t *testing.T) {
	for name, test := range map[string]struct {
		hook, script, says string
		ssh                bool
	}{
		"protected branch":    {hook: "update", script: `echo "$1 is protected: ` + gittest.Password + `" >&2; exit 1`, says: "is protected: [redacted]"},
		"policy over ssh":     {hook: "pre-receive", script: `echo "sign your commits" >&2; exit 1`, says: "sign your commits", ssh: true},
		"full disk":           {hook: "pre-receive", script: `dd if=/dev/zero of=/dev/full bs=1 count=1 >&2`, says: "No space left on device"},
		"a talkative server":  {hook: "pre-receive", script: `yes | head -c 1000000 >&2; exit 1`, says: "y y y"},
		"terminal sequences":  {hook: "pre-receive", script: `printf '\033[31mred\033[0m\n' >&2; exit 1`, says: "red"},
		"without any message": {hook: "pre-receive", script: `exit 1`, says: "hook declined"},
	} {
		t.Run(name, func(t *testing.T) {
			_, repository, remote := overHTTPS(t)
			if test.ssh {
				_, repository, remote = overSSH(t, "ed25519", "")
			}
			tip := repository.Commit(gittest.Branch, map[string]string{"log": "begin\n"})
			repository.Hook(test.hook, test.script)
			_, err := open(t, remote, Options{}).Update(t.Context(), Message{Subject: "x"}, appendLine("log", "mine"))
			var rejected *RejectedError
			if !errors.As(err, &rejected) || rejected.Branch != gittest.Branch || repository.Tip(gittest.Branch) != tip {
				t.Fatalf("error %T %v", err, err)
			}
			if !strings.Contains(err.Error(), test.says) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("error %q doesn't say %q", err, test.says)
			}
		})
	}
}

func TestHooksAfterAPushAreNotCutOff(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*gittest.Repository, Remote){
		"https": func(t *testing.T) (*gittest.Repository, Remote) { _, r, remote := overHTTPS(t); return r, remote },
		"ssh": func(t *testing.T) (*gittest.Repository, Remote) {
			_, r, remote := overSSH(t, "ed25519", "")
			return r, remote
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository, remote := start(t)
			repository.Hook("post-receive", `for i in 1 2 3 4 5; do sleep 0.1; echo "notifying $i" || exit 1; done; echo finished >notified`)
			mustUpdate(t, open(t, remote, Options{}), set(map[string]string{"a": "a"}))
			notified, err := os.ReadFile(filepath.Join(repository.Dir, "notified"))
			if string(notified) != "finished\n" {
				t.Errorf("the hook wrote %q, error %v", notified, err)
			}
		})
	}
}

func TestCommitsHaveAnAuthorATimeAndTrailers(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	r := open(t, remote, Options{AuthorName: "Fleet Bot", AuthorEmail: "bot@example.com", Clock: fixedClock(time.Unix(1700000000, 0).UTC())})
	_, err := r.Update(t.Context(), Message{
		Subject: "Upgrade cluster dev\nInjected: yes", Body: "Kubernetes 1.36.\n\nDrover-On-Behalf-Of: somebody else",
		OnBehalfOf: "jane\nInjected: yes", Command: "drover upgrade cluster -f dev.yaml",
	}, set(map[string]string{"a": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	want := "Fleet Bot <bot@example.com> 1700000000 Upgrade cluster dev Injected: yes"
	if got := repository.Git("log", "--format=%an <%ae> %at %s", gittest.Branch); got != want {
		t.Errorf("commit %q, want %q", got, want)
	}
	trailers := repository.Git("log", "--format=%(trailers:only,unfold)", gittest.Branch)
	if diff := cmp.Diff("Drover-Command: drover upgrade cluster -f dev.yaml\nDrover-On-Behalf-Of: jane Injected: yes", trailers); diff != "" {
		t.Error(diff)
	}
}
