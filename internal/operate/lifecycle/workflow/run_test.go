package workflow

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

// stage is where fake phases play. What they did is a file, so that a process that is killed leaves it.
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

// done are the words of the log since the last look.
func (s *stage) done() []string {
	s.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	_ = os.Remove(s.log)
	return strings.Fields(string(data))
}

// plan has the phases of a command write their names, and do something else where that is asked for.
func (s *stage) plan(command Command, instead map[string]func(context.Context, *Progress) error) *Plan {
	s.Helper()
	var phases []Phase
	for _, name := range command.Phases() {
		run := instead[name]
		phases = append(phases, Phase{
			Name: name, Repeat: name == SetupAndValidate, Fixes: name == MoveManagementCluster,
			Run: func(ctx context.Context, p *Progress) error {
				if err := s.did(name); err != nil || run == nil {
					return err
				}
				return run(ctx, p)
			},
		})
	}
	plan, err := New(command, "one", phases...)
	if err != nil {
		s.Fatal(err)
	}
	plan.Fingerprint, plan.Again = "a", "drover create cluster -f one.yaml"
	return plan
}

func (s *stage) tell(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Status != Waiting {
		s.events = append(s.events, strings.TrimSpace(fmt.Sprint(e.Phase, " ", e.Status, " ", e.Detail)))
	}
}

func (s *stage) run(p *Plan) ([]Result, error) { return p.Run(s.Context(), s.at, s.tell) }

var (
	managementCreate = Command{Verb: Create}
	workloadCreate   = Command{Verb: Create, Workload: true}
)

func fail(context.Context, *Progress) error { return errors.New("the machine is on fire") }

func TestPhasesAreDoneInOrderAndNothingIsLeft(t *testing.T) {
	for command, names := range lists {
		s := newStage(t, t.TempDir())
		results, err := s.run(s.plan(command, nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(names, s.done()); diff != "" {
			t.Errorf("%v, workload %v, did (-want +got):\n%s", command, command.Workload, diff)
		}
		if len(results) != len(names) {
			t.Errorf("%d phases are reported, want %d", len(results), len(names))
		}
		if _, err := os.Stat(filepath.Dir(s.at.Dir)); !os.IsNotExist(err) {
			t.Errorf("a finished run leaves its directory: %v", err)
		}
	}
}

func TestAFailureIsResumedInEachPhase(t *testing.T) {
	for command, names := range lists {
		for i, failing := range names[1:] {
			s := newStage(t, t.TempDir())
			results, err := s.run(s.plan(command, map[string]func(context.Context, *Progress) error{failing: fail}))
			var phase *PhaseError
			if !errors.As(err, &phase) || phase.Phase != failing || !strings.Contains(err.Error(), "on fire") || !strings.Contains(err.Error(), phase.Again) {
				t.Fatalf("error = %v, want one that names %s, its cause and what to type", err, failing)
			}
			if len(results) != i+1 {
				t.Errorf("%d phases are reported as done before %s, want %d", len(results), failing, i+1)
			}
			if diff := cmp.Diff(names[:i+2], s.done()); diff != "" {
				t.Errorf("the first run did (-want +got):\n%s", diff)
			}
			results, err = s.run(s.plan(command, map[string]func(context.Context, *Progress) error{
				SetupAndValidate: func(_ context.Context, p *Progress) error {
					if !p.Resumed() {
						return errors.New("nobody said that there was a run before")
					}
					return nil
				},
			}))
			if err != nil {
				t.Fatal(err)
			}
			want := append([]string{SetupAndValidate}, names[i+1:]...)
			if diff := cmp.Diff(want, s.done()); diff != "" {
				t.Errorf("after a failure in %s the second run did (-want +got):\n%s", failing, diff)
			}
			for j, r := range results {
				if before := j > 0 && j <= i; r.Before != before {
					t.Errorf("phase %s is reported as done before: %v, want %v", r.Name, r.Before, before)
				}
			}
		}
	}
}

func TestARefusalBeforeAnythingIsDoneLeavesNothing(t *testing.T) {
	s := newStage(t, t.TempDir())
	for range 2 {
		if _, err := s.run(s.plan(workloadCreate, map[string]func(context.Context, *Progress) error{
			SetupAndValidate: func(_ context.Context, p *Progress) error {
				if p.Resumed() {
					return errors.New("a run that was refused counts as begun")
				}
				return errors.New("no such machine type")
			},
		})); err == nil || !strings.Contains(err.Error(), "no such machine type") {
			t.Fatalf("error = %v", err)
		}
		if _, err := os.Stat(filepath.Dir(s.at.Dir)); !os.IsNotExist(err) {
			t.Errorf("a refused run leaves its directory: %v", err)
		}
	}
}

func TestAPhaseMaySkipItselfOrAllThatFollows(t *testing.T) {
	s := newStage(t, t.TempDir())
	results, err := s.run(s.plan(Command{Verb: Upgrade}, map[string]func(context.Context, *Progress) error{
		UpdateSecrets: func(context.Context, *Progress) error { return Skip("they are as they should be") },
		UpgradeNeeded: func(context.Context, *Progress) error { return Finish("nothing changed") },
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{SetupAndValidate, UpdateSecrets, UpgradeNeeded}, s.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if len(results) != 12 || results[1].Skipped != "they are as they should be" || results[11].Skipped != "nothing changed" {
		t.Errorf("reported: %+v", results)
	}
	if !slices.Contains(s.events, fmt.Sprint(DeleteBootstrap, " ", Skipped, " nothing changed")) {
		t.Errorf("told: %q", s.events)
	}
}

func TestCtrlCEndsARunThatGoesOnLater(t *testing.T) {
	s := newStage(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.plan(workloadCreate, map[string]func(context.Context, *Progress) error{
		CreateWorkloadCluster: func(ctx context.Context, _ *Progress) error {
			cancel()
			<-ctx.Done()
			return fmt.Errorf("waiting: %w", ctx.Err())
		},
	}).Run(ctx, s.at, s.tell)
	var interrupted *InterruptedError
	if !errors.As(err, &interrupted) || interrupted.Phase != CreateWorkloadCluster || !strings.Contains(err.Error(), "drover create cluster -f one.yaml") {
		t.Fatalf("error = %v, want one that says how to go on", err)
	}
	s.done()
	if command, phase, err := s.at.Unfinished(); err != nil || command != "create cluster" || phase != CreateWorkloadCluster {
		t.Errorf("unfinished: %q in %q, %v", command, phase, err)
	}
	if _, err := s.run(s.plan(workloadCreate, nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(workloadCreate.Phases(), s.done()); diff != "" {
		t.Errorf("the second run did (-want +got):\n%s", diff)
	}
}

func TestAChangedSpecIsDoneAgainUntilItIsTooLate(t *testing.T) {
	s := newStage(t, t.TempDir())
	failing := map[string]func(context.Context, *Progress) error{CreateWorkloadCluster: fail}
	_, _ = s.run(s.plan(managementCreate, failing))
	s.done()

	changed := s.plan(managementCreate, map[string]func(context.Context, *Progress) error{InstallEKSAComponents: fail})
	changed.Fingerprint = "b"
	if _, err := s.run(changed); err == nil {
		t.Fatal("the second run fails too")
	}
	if diff := cmp.Diff(managementCreate.Phases()[:5], s.done()); diff != "" {
		t.Errorf("with another spec it did (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(s.events, func(e string) bool { return strings.Contains(e, "the spec has changed") }) {
		t.Errorf("nobody said that the spec changed: %q", s.events)
	}

	late := s.plan(managementCreate, nil)
	late.Fingerprint = "c"
	var tooLate *ChangedError
	if _, err := s.run(late); !errors.As(err, &tooLate) || tooLate.Phase != MoveManagementCluster {
		t.Errorf("error = %v, want one that says since when it is too late", err)
	}
	if got := s.done(); len(got) > 0 {
		t.Errorf("it did %q all the same", got)
	}
	if _, err := s.run(changed); err == nil {
		t.Error("the record of the run before is gone")
	}
}

func TestAnUnfinishedCommandComesBeforeAnother(t *testing.T) {
	s := newStage(t, t.TempDir())
	_, _ = s.run(s.plan(workloadCreate, map[string]func(context.Context, *Progress) error{CreateWorkloadCluster: fail}))
	s.done()
	var other *OtherCommandError
	_, err := s.run(s.plan(Command{Verb: Upgrade, Workload: true}, nil))
	if !errors.As(err, &other) || other.Unfinished != "create cluster" || len(s.done()) > 0 {
		t.Errorf("upgrading what is being created: %v", err)
	}
	if _, err := s.run(s.plan(Command{Verb: Delete, Workload: true}, map[string]func(context.Context, *Progress) error{
		SetupAndValidate: func(_ context.Context, p *Progress) error {
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

func TestOfTwoAtOnceOneIsRefused(t *testing.T) {
	s := newStage(t, t.TempDir())
	inside, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := s.run(s.plan(workloadCreate, map[string]func(context.Context, *Progress) error{
			CreateWorkloadCluster: func(context.Context, *Progress) error { close(inside); <-goOn; return nil },
		}))
		ended <- err
	}()
	<-inside
	var busy *BusyError
	if _, err := s.run(s.plan(workloadCreate, nil)); !errors.As(err, &busy) {
		t.Errorf("the second one: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("the first one: %v", err)
	}
	if diff := cmp.Diff(workloadCreate.Phases(), s.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

func TestARecordThatCantBeReadIsRefused(t *testing.T) {
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
			if _, err := s.run(s.plan(workloadCreate, nil)); err == nil || !strings.Contains(err.Error(), s.at.Path()) {
				t.Errorf("error = %v, want one that names the file", err)
			}
			if got := s.done(); len(got) > 0 {
				t.Errorf("it did %q", got)
			}
			if data, err := os.ReadFile(s.at.Path()); err != nil || string(data) != content {
				t.Errorf("the record became %q, %v", data, err)
			}
		})
	}
}

func TestTheRecordIsPrivateAndKeepsWhatPhasesWantToKnow(t *testing.T) {
	s := newStage(t, t.TempDir())
	instead := map[string]func(context.Context, *Progress) error{
		CreateWorkloadCluster: func(ctx context.Context, p *Progress) error {
			return errors.Join(p.Keep("paused", []string{"x", "y"}), fail(ctx, p))
		},
	}
	_, _ = s.run(s.plan(workloadCreate, instead))
	if info, err := os.Stat(s.at.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record: %v, %v", info, err)
	}
	var got []string
	instead[CreateWorkloadCluster] = func(_ context.Context, p *Progress) error {
		ok, err := p.Kept("paused", &got)
		none, noErr := p.Kept("nothing", &got)
		if !ok || none {
			t.Errorf("kept: %v, what was not kept: %v", ok, none)
		}
		return errors.Join(err, noErr)
	}
	if _, err := s.run(s.plan(workloadCreate, instead)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "y"}, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestAFullDiskIsNoticedBeforeAnythingIsDoneAndAfterEachPhase(t *testing.T) {
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
	if _, err := s.run(s.plan(workloadCreate, nil)); !errors.Is(err, unix.ENOSPC) || len(s.done()) > 0 {
		t.Errorf("on a full disk: %v", err)
	}
	_ = os.Remove(filler)
	_, err := s.run(s.plan(workloadCreate, map[string]func(context.Context, *Progress) error{
		CreateWorkloadCluster: func(context.Context, *Progress) error { fill(); return nil },
	}))
	var phase *PhaseError
	if !errors.As(err, &phase) || phase.Phase != CreateWorkloadCluster || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a disk that fills up: %v", err)
	}
	s.done()
	_ = os.Remove(filler)
	if _, err := s.run(s.plan(workloadCreate, nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(workloadCreate.Phases(), s.done()); diff != "" {
		t.Errorf("with room again it did (-want +got):\n%s", diff)
	}
}

func TestAPlanIsExactlyTheListOfItsCommand(t *testing.T) {
	run := func(context.Context, *Progress) error { return nil }
	if _, err := New(workloadCreate, "one", Phase{Name: SetupAndValidate, Run: run}); err == nil || !strings.Contains(err.Error(), CreateWorkloadCluster) {
		t.Errorf("a phase that is missing: %v", err)
	}
	if _, err := New(workloadCreate, "one", Phase{Name: DeleteBootstrap, Run: run}); err == nil || !strings.Contains(err.Error(), DeleteBootstrap) {
		t.Errorf("a phase that is too many: %v", err)
	}
	for command, names := range lists {
		for _, name := range names {
			if summaries[name] == "" {
				t.Errorf("phase %s of %s says nothing of itself", name, command)
			}
		}
	}
}
