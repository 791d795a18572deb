package process

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestIdentityOfNoProcess(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		if got := Identify(pid); got != (Process{}) {
			t.Errorf("process %d is %+v", pid, got)
		}
	}
	none := Process{}
	if none.Alive() || none.Kill(0) != nil || !none.Wait(0) {
		t.Error("no process is alive")
	}
	if MemoryBytes(1<<30) != 0 {
		t.Error("a process that does not exist uses memory")
	}
}

func TestKilledProcessIsNotAlive(t *testing.T) {
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	p := Identify(cmd.Process.Pid)
	if !p.Alive() || p.Wait(0) {
		t.Fatalf("process %+v is not alive", p)
	}
	other := Process{PID: p.PID, Start: "another"}
	if err := other.Signal(unix.SIGKILL); !errors.Is(err, os.ErrProcessDone) || other.Alive() {
		t.Errorf("another process of the same number was signaled: %v", err)
	}
	if err := other.Kill(time.Minute); err != nil || !p.Alive() {
		t.Errorf("killing another process of the same number: %v, alive: %t", err, p.Alive())
	}
	if err := p.Kill(time.Minute); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("the process survives")
	}
}
