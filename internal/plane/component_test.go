package plane

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/process"
)

// testComponent is this test binary, see TestMain.
func testComponent(behavior string) Component {
	return Component{
		Name: "test",
		Command: func() *exec.Cmd {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "PLANE_TEST_CHILD="+behavior)
			return cmd
		},
		Probe: func(context.Context) error {
			if behavior == "fail" {
				return errors.New("no response")
			}
			return nil
		},
	}
}

func startChild(t *testing.T, behavior string) *child {
	t.Helper()
	c := newChild(testComponent(behavior), newLogFile(filepath.Join(t.TempDir(), "log")), func() {})
	c.start()
	t.Cleanup(c.stop)
	return c
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

func TestKilledComponentIsRestarted(t *testing.T) {
	c := startChild(t, "serve")
	<-c.served
	first := c.snapshot().PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a new process serves", func() bool { s := c.snapshot(); return s.Ready() && s.PID != first })
	s := c.snapshot()
	if s.Restarts != 1 || s.LastExit != "signal: killed" {
		t.Errorf("restarts = %d, last exit = %q; want 1 and signal: killed", s.Restarts, s.LastExit)
	}
}

func TestRequestedRestartIsNotAFailure(t *testing.T) {
	c := startChild(t, "serve")
	<-c.served
	first := c.snapshot().PID
	c.restart()
	waitFor(t, "a new process serves", func() bool { s := c.snapshot(); return s.Ready() && s.PID != first })
	if s := c.snapshot(); s.Restarts != 0 {
		t.Errorf("restarts = %d, want 0", s.Restarts)
	}
}

func TestCrashLoopIsReportedWithTheLogTail(t *testing.T) {
	c := startChild(t, "fail")
	<-c.hopeless
	s := c.snapshot()
	if s.State != CrashLoop || s.LastExit != "exit status 7" || len(s.LogTail) == 0 || !strings.Contains(s.LogTail[0], "no such luck") {
		t.Errorf("status = %+v, want a crash loop with the log", s)
	}
	if e := c.startError(); !strings.Contains(e.Error(), "no such luck") {
		t.Errorf("start error = %v, want one that quotes the log", e)
	}
}

func TestStopKillsAnUnresponsiveProcess(t *testing.T) {
	cmd := testComponent("stubborn").Command()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	exited := make(chan string, 1)
	go func() { _ = cmd.Wait(); exited <- cmd.ProcessState.String() }()
	killed := terminate(cmd, exited, 50*time.Millisecond)
	if got := cmd.ProcessState.String(); got != "signal: killed" || !killed {
		t.Errorf("ended with %q, reported as killed: %t; want signal: killed", got, killed)
	}
}

// startSupervisor runs one with a child in another process.
func startSupervisor(t *testing.T, env ...string) (supervisor *exec.Cmd, child process.Process) {
	t.Helper()
	cmd := testComponent("supervise").Command()
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	child = process.Identify(pid)
	if !child.Alive() {
		t.Fatal("the child does not run")
	}
	return cmd, child
}

func TestChildrenDieWithTheirSupervisor(t *testing.T) {
	cmd, child := startSupervisor(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitFor(t, "the child is gone", func() bool { return !child.Alive() })
}

func TestBackoffDoublesUpToALimit(t *testing.T) {
	for streak, want := range map[int]time.Duration{
		1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 3: time.Second, 7: 16 * time.Second, 8: 30 * time.Second, 1000: 30 * time.Second,
	} {
		if got := backoff(streak); got != want {
			t.Errorf("backoff(%d) = %v, want %v", streak, got, want)
		}
	}
}
