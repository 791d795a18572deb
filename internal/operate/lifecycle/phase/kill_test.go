package phase

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dirVariable turns this test program into a run that stays in one phase until it is killed.
const dirVariable = "PHASE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		runUntilKilled(dir, os.Args[1])
	}
	os.Exit(m.Run())
}

// runUntilKilled begins a run and never ends it.
func runUntilKilled(dir, phase string) {
	s := newStage(&testing.B{}, dir)
	plan := s.create(map[string]func(context.Context, *Progress) error{
		phase: func(_ context.Context, p *Progress) error {
			if err := p.Keep("where", p.phase); err != nil {
				return err
			}
			_, _ = os.Stdout.WriteString("here\n")
			select {}
		},
	})
	_, _ = plan.Run(context.Background(), s.at, func(Event) {})
	os.Exit(1)
}

// killIn starts another process, and kills it in the phase.
func killIn(t *testing.T, dir, phase string) {
	t.Helper()
	child := exec.Command(os.Args[0], phase)
	child.Env = append(os.Environ(), dirVariable+"="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = child.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "here" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
}

func TestKilledRunIsResumedInEachPhase(t *testing.T) {
	for i, phase := range names() {
		dir := t.TempDir()
		killIn(t, dir, phase)
		s := newStage(t, dir)
		if diff := cmp.Diff(names()[:i+1], s.done()); diff != "" {
			t.Errorf("before it was killed in %s it did (-want +got):\n%s", phase, diff)
		}
		_, err := s.run(s.create(map[string]func(context.Context, *Progress) error{
			phase: func(_ context.Context, p *Progress) error {
				var where string
				if ok, err := p.Kept("where", &where); err != nil || !ok || where != phase {
					return errors.New("what the killed run kept is gone")
				}
				if resumed := i > 0; p.Resumed() != resumed {
					t.Errorf("after a kill in %s the run counts as resumed: %v", phase, p.Resumed())
				}
				return nil
			},
		}))
		if err != nil {
			t.Errorf("after a kill in %s: %v", phase, err)
		}
		want := names()[i:]
		if i > 0 {
			want = append([]string{validate}, want...)
		}
		if diff := cmp.Diff(want, s.done()); diff != "" {
			t.Errorf("after a kill in %s it did (-want +got):\n%s", phase, diff)
		}
	}
}
