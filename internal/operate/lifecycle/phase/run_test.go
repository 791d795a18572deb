package phase

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// stage runs fake phases. They log to a file, which survives a process that is killed.
type stage struct {
	testing.TB

	at  Record
	log string

	mu     sync.Mutex
	events []string
}

func newStage(t testing.TB, dir string) *stage {
	return &stage{TB: t, at: Record{Dir: filepath.Join(dir, "one", "generated"), Cluster: "one"}, log: filepath.Join(dir, "log")}
}

// did appends a word to the log.
func (s *stage) did(word string) error {
	f, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, word)
	return errors.Join(err, f.Close())
}

// done returns the words of the log since the last call.
func (s *stage) done() []string {
	s.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	_ = os.Remove(s.log)
	return strings.Fields(string(data))
}

// The phases of the tests: the first is repeated, and Move fixes the spec.
const (
	validate = "Validate"
	prepare  = "Prepare"
	build    = "Build"
	move     = "Move"
	settle   = "Settle"
)

func names() []string { return []string{validate, prepare, build, move, settle} }

// plan returns a plan whose phases write their names, and do something else where that is given.
func (s *stage) plan(command string, instead map[string]func(context.Context, *Progress) error) *Plan {
	s.Helper()
	plan := &Plan{
		Command: command, Cluster: "one", Fingerprint: "a", Again: "drover create cluster -f one.yaml",
		Supersedes: command == "delete cluster",
	}
	for _, name := range names() {
		run := instead[name]
		plan.Phases = append(plan.Phases, Phase{
			Name: name, Repeat: name == validate, Fixes: name == move,
			Run: func(ctx context.Context, p *Progress) error {
				if err := s.did(name); err != nil || run == nil {
					return err
				}
				return run(ctx, p)
			},
		})
	}
	return plan
}

func (s *stage) create(instead map[string]func(context.Context, *Progress) error) *Plan {
	s.Helper()
	return s.plan("create cluster", instead)
}

func (s *stage) report(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Status != Waiting {
		s.events = append(s.events, strings.TrimSpace(fmt.Sprint(e.Phase, " ", e.Status, " ", e.Detail)))
	}
}

func (s *stage) run(p *Plan) ([]Result, error) { return p.Run(s.Context(), s.at, s.report) }

func fail(context.Context, *Progress) error { return errors.New("the machine is on fire") }

func TestRunRunsPhasesInOrderAndLeavesNothing(t *testing.T) {
	s := newStage(t, t.TempDir())
	results, err := s.run(s.create(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names(), s.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if len(results) != len(names()) {
		t.Errorf("%d phases are reported, want %d", len(results), len(names()))
	}
	if _, err := os.Stat(filepath.Dir(s.at.Dir)); !os.IsNotExist(err) {
		t.Errorf("a finished run leaves its directory: %v", err)
	}
}

func TestFailureIsResumedInEachPhase(t *testing.T) {
	for i, failing := range names()[1:] {
		t.Run(failing, func(t *testing.T) {
			s := newStage(t, t.TempDir())
			results, err := s.run(s.create(map[string]func(context.Context, *Progress) error{failing: fail}))
			var phase *FailedError
			if !errors.As(err, &phase) || phase.Phase != failing || !strings.Contains(err.Error(), "on fire") || !strings.Contains(err.Error(), phase.Again) {
				t.Fatalf("got error %v, want one that names %s, its cause and what to type", err, failing)
			}
			if len(results) != i+1 {
				t.Errorf("%d phases are reported as done, want %d", len(results), i+1)
			}
			if diff := cmp.Diff(names()[:i+2], s.done()); diff != "" {
				t.Errorf("the first run did (-want +got):\n%s", diff)
			}
			results, err = s.run(s.create(map[string]func(context.Context, *Progress) error{
				validate: func(_ context.Context, p *Progress) error {
					if !p.Resumed() {
						return errors.New("the run does not count as resumed")
					}
					return nil
				},
			}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]string{validate}, names()[i+1:]...), s.done()); diff != "" {
				t.Errorf("the second run did (-want +got):\n%s", diff)
			}
			for j, r := range results {
				if before := j > 0 && j <= i; r.Before != before {
					t.Errorf("phase %s is reported as done before: %v, want %v", r.Name, r.Before, before)
				}
			}
		})
	}
}

func TestFailedValidationLeavesNothing(t *testing.T) {
	s := newStage(t, t.TempDir())
	for range 2 {
		if _, err := s.run(s.create(map[string]func(context.Context, *Progress) error{
			validate: func(_ context.Context, p *Progress) error {
				if p.Resumed() {
					return errors.New("a run that failed its validation counts as begun")
				}
				return errors.New("no such machine type")
			},
		})); err == nil || !strings.Contains(err.Error(), "no such machine type") {
			t.Fatalf("error = %v", err)
		}
		if _, err := os.Stat(filepath.Dir(s.at.Dir)); !os.IsNotExist(err) {
			t.Errorf("a run that failed its validation leaves its directory: %v", err)
		}
	}
}

func TestPhaseMaySkipItselfOrAllThatFollow(t *testing.T) {
	s := newStage(t, t.TempDir())
	results, err := s.run(s.plan("upgrade cluster", map[string]func(context.Context, *Progress) error{
		prepare: func(context.Context, *Progress) error { return Skip("they are as they should be") },
		build:   func(context.Context, *Progress) error { return Finish("nothing changed") },
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{validate, prepare, build}, s.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if len(results) != 5 || results[1].Skipped != "they are as they should be" || results[4].Skipped != "nothing changed" {
		t.Errorf("reported: %+v", results)
	}
	if !slices.Contains(s.events, fmt.Sprint(settle, " ", Skipped, " nothing changed")) {
		t.Errorf("told: %q", s.events)
	}
}

func TestCanceledRunIsResumed(t *testing.T) {
	s := newStage(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.create(map[string]func(context.Context, *Progress) error{
		build: func(ctx context.Context, _ *Progress) error {
			cancel()
			<-ctx.Done()
			return fmt.Errorf("waiting: %w", ctx.Err())
		},
	}).Run(ctx, s.at, s.report)
	var interrupted *InterruptedError
	if !errors.As(err, &interrupted) || interrupted.Phase != build || !strings.Contains(err.Error(), "drover create cluster -f one.yaml") {
		t.Fatalf("got error %v, want one that says how to resume", err)
	}
	s.done()
	if command, phase, err := s.at.Unfinished(); err != nil || command != "create cluster" || phase != build {
		t.Errorf("unfinished: %q in %q, %v", command, phase, err)
	}
	if _, err := s.run(s.create(nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{validate, build, move, settle}, s.done()); diff != "" {
		t.Errorf("the second run did (-want +got):\n%s", diff)
	}
}

func TestChangedSpecRunsAllPhasesAgainUntilItIsFixed(t *testing.T) {
	s := newStage(t, t.TempDir())
	failing := map[string]func(context.Context, *Progress) error{build: fail}
	_, _ = s.run(s.create(failing))
	s.done()

	changed := s.create(map[string]func(context.Context, *Progress) error{settle: fail})
	changed.Fingerprint = "b"
	if _, err := s.run(changed); err == nil {
		t.Fatal("the second run fails too")
	}
	if diff := cmp.Diff(names(), s.done()); diff != "" {
		t.Errorf("with another spec it did (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(s.events, func(e string) bool { return strings.Contains(e, "the spec has changed") }) {
		t.Errorf("got events %q, want one about the changed spec", s.events)
	}

	late := s.create(nil)
	late.Fingerprint = "c"
	var tooLate *ChangedError
	if _, err := s.run(late); !errors.As(err, &tooLate) || tooLate.Phase != move {
		t.Errorf("got error %v, want one that says since when it is too late", err)
	}
	if got := s.done(); len(got) > 0 {
		t.Errorf("it did %q all the same", got)
	}
	if _, err := s.run(changed); err == nil {
		t.Error("running with a changed spec: got no error, want the one of the previous run")
	}
}

func TestUnfinishedCommandBlocksOthersButDeletion(t *testing.T) {
	s := newStage(t, t.TempDir())
	_, _ = s.run(s.create(map[string]func(context.Context, *Progress) error{build: fail}))
	s.done()
	var other *OtherCommandError
	_, err := s.run(s.plan("upgrade cluster", nil))
	if !errors.As(err, &other) || other.Unfinished != "create cluster" || len(s.done()) > 0 {
		t.Errorf("upgrading what is being created: %v", err)
	}
	if _, err := s.run(s.plan("delete cluster", map[string]func(context.Context, *Progress) error{
		validate: func(_ context.Context, p *Progress) error {
			if !p.Resumed() {
				t.Error("deleting what is being created counts as if nothing was done")
			}
			return nil
		},
	})); err != nil {
		t.Errorf("deleting what is being created: %v", err)
	}
	if _, _, err := s.at.Unfinished(); err != nil {
		t.Error(err)
	}
}

func TestSecondRunAtTheSameTimeIsRejected(t *testing.T) {
	s := newStage(t, t.TempDir())
	inside, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := s.run(s.create(map[string]func(context.Context, *Progress) error{
			build: func(context.Context, *Progress) error { close(inside); <-goOn; return nil },
		}))
		ended <- err
	}()
	<-inside
	var busy *BusyError
	if _, err := s.run(s.create(nil)); !errors.As(err, &busy) {
		t.Errorf("the second one: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("the first one: %v", err)
	}
	if diff := cmp.Diff(names(), s.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

func TestUnreadableCheckpointIsRejectedAndKept(t *testing.T) {
	for name, content := range map[string]string{
		"garbage":         "\x00\x01\x02",
		"cut short":       "format: 1\ncommand: crea",
		"nothing":         "",
		"something else":  "kind: Pod\n",
		"another cluster": "format: 1\ncommand: create cluster\ncluster: two\n",
		"a later format":  "format: 2\ncommand: create cluster\ncluster: one\ndrover: v9.0.0\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, t.TempDir())
			if err := os.MkdirAll(s.at.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.at.Path(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.run(s.create(nil)); err == nil || !strings.Contains(err.Error(), s.at.Path()) {
				t.Errorf("got error %v, want one that names the file", err)
			}
			if got := s.done(); len(got) > 0 {
				t.Errorf("it did %q", got)
			}
			if data, err := os.ReadFile(s.at.Path()); err != nil || string(data) != content {
				t.Errorf("got record %q, error %v", data, err)
			}
		})
	}
}

func TestCheckpointIsPrivateAndKeepsValues(t *testing.T) {
	s := newStage(t, t.TempDir())
	instead := map[string]func(context.Context, *Progress) error{
		build: func(ctx context.Context, p *Progress) error {
			return errors.Join(p.Keep("paused", []string{"x", "y"}), fail(ctx, p))
		},
	}
	_, _ = s.run(s.create(instead))
	if info, err := os.Stat(s.at.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record: %v, %v", info, err)
	}
	var got []string
	instead[build] = func(_ context.Context, p *Progress) error {
		ok, err := p.Kept("paused", &got)
		none, noErr := p.Kept("nothing", &got)
		if !ok || none {
			t.Errorf("kept: %v, what was not kept: %v", ok, none)
		}
		return errors.Join(err, noErr)
	}
	if _, err := s.run(s.create(instead)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "y"}, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestFullDiskFailsTheRun(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); errors.Is(err, unix.EPERM) {
		t.Skip("mounting a file system needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	fill := func() {
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk does not fill up: %v", err)
		}
	}
	s := newStage(t, dir)
	s.log = filepath.Join(t.TempDir(), "log")
	fill()
	if _, err := s.run(s.create(nil)); !errors.Is(err, unix.ENOSPC) || len(s.done()) > 0 {
		t.Errorf("on a full disk: %v", err)
	}
	_ = os.Remove(filler)
	_, err := s.run(s.create(map[string]func(context.Context, *Progress) error{
		build: func(context.Context, *Progress) error { fill(); return nil },
	}))
	var phase *FailedError
	if !errors.As(err, &phase) || phase.Phase != build || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a disk that fills up: %v", err)
	}
	s.done()
	_ = os.Remove(filler)
	if _, err := s.run(s.create(nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{validate, build, move, settle}, s.done()); diff != "" {
		t.Errorf("with room again it did (-want +got):\n%s", diff)
	}
}

func TestRunRejectsAPlanThatCannotBeResumed(t *testing.T) {
	run := func(context.Context, *Progress) error { return nil }
	for name, phases := range map[string][]Phase{
		"a name that occurs twice": {{Name: build, Run: run}, {Name: build, Run: run}},
		"a phase without a name":   {{Run: run}},
		"a phase without work":     {{Name: build}},
	} {
		s := newStage(t, t.TempDir())
		if _, err := s.run(&Plan{Command: "create cluster", Cluster: "one", Phases: phases}); err == nil || !strings.Contains(err.Error(), "create cluster") {
			t.Errorf("%s: got error %v, want one that contains %q", name, err, "create cluster")
		}
		if _, err := os.Stat(s.at.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: a directory was created: %v", name, err)
		}
	}
}

// A checkpoint of an earlier Drover is resumed: its keys and the names of phases are a contract.
func TestCheckpointOfAnEarlierVersionIsResumed(t *testing.T) {
	s := newStage(t, t.TempDir())
	if err := os.MkdirAll(s.at.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const earlier = `format: 1
command: create cluster
cluster: one
fingerprint: a
drover: v0.5.0
started: "2026-01-01T00:00:00Z"
begun: true
running: Build
done:
- {name: Validate, finished: "2026-01-01T00:00:01Z", seconds: 1}
- {name: Prepare, finished: "2026-01-01T00:00:02Z", seconds: 1, skipped: nothing to prepare}
kept: {paused: [x]}
`
	if err := os.WriteFile(s.at.Path(), []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	var kept []string
	results, err := s.run(s.create(map[string]func(context.Context, *Progress) error{
		build: func(_ context.Context, p *Progress) error {
			_, err := p.Kept("paused", &kept)
			return err
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{validate, build, move, settle}, s.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if !results[1].Before || results[1].Skipped != "nothing to prepare" || !slices.Equal(kept, []string{"x"}) {
		t.Errorf("results = %+v, kept = %v", results, kept)
	}
}

func TestErrorsSayHowToContinue(t *testing.T) {
	cause := errors.New("the machine is on fire")
	tests := map[string]struct {
		err  error
		want []string
	}{
		"a failure that changed nothing":      {&FailedError{Phase: validate, Again: "drover x", Err: cause}, []string{"phase Validate failed", "on fire", "Nothing was changed."}},
		"a failure that can be resumed":       {&FailedError{Phase: build, Again: "drover x", Begun: true, Err: cause}, []string{"on fire", "To resume", "\n  drover x"}},
		"an interruption, nothing changed":    {&InterruptedError{Phase: validate, Again: "drover x", Err: cause}, []string{"interrupted in phase Validate; nothing was changed"}},
		"an interruption that can be resumed": {&InterruptedError{Phase: build, Again: "drover x", Begun: true, Err: cause}, []string{"interrupted in phase Build", "To resume", "\n  drover x"}},
		"another process":                     {&BusyError{Cluster: "one", Lock: "one.lock"}, []string{`cluster "one"`, `"one.lock"`}},
		"a damaged checkpoint":                {&DamagedError{Path: "c.yaml", Err: cause}, []string{`"c.yaml"`, "on fire", "remove the file"}},
		"another command":                     {&OtherCommandError{Cluster: "one", Unfinished: "create cluster", Phase: build, Path: "c.yaml"}, []string{"`drover create cluster`", "unfinished", "Run it again first"}},
		"a changed spec":                      {&ChangedError{Cluster: "one", Phase: move, Path: "c.yaml"}, []string{`cluster "one"`, "phase Move", "previous spec"}},
	}
	for name, tt := range tests {
		for _, want := range tt.want {
			if !strings.Contains(tt.err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, tt.err, want)
			}
		}
	}
	if !errors.Is(&FailedError{Err: cause}, cause) || !errors.Is(&InterruptedError{Err: cause}, cause) || !errors.Is(&DamagedError{Err: cause}, cause) {
		t.Error("the cause is lost")
	}
}

func TestNamesAreThoseOfThePhases(t *testing.T) {
	s := newStage(t, t.TempDir())
	if diff := cmp.Diff(names(), s.create(nil).Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestWaitingReportsAnActivityOnce(t *testing.T) {
	s := newStage(t, t.TempDir())
	var got []string
	_, err := s.create(map[string]func(context.Context, *Progress) error{
		build: func(_ context.Context, p *Progress) error {
			p.Waiting("Creating machine %d/%d", 1, 2)
			p.Waiting("Creating machine 1/2")
			p.Waiting("Creating machine 2/2")
			return nil
		},
	}).Run(t.Context(), s.at, func(e Event) {
		if e.Status == Waiting {
			got = append(got, e.Detail)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Creating machine 1/2", "Creating machine 2/2"}, got); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
	var none *Progress
	none.Waiting("Creating machine")
	none.Note("worth knowing")
	if none.Resumed() {
		t.Error("no run counts as resumed")
	}
}
