package process

import (
	"os"
	"testing"
	"time"
)

func TestReusedPIDIsNotMistakenForTheProcess(t *testing.T) {
	me := Identify(os.Getpid())
	if !me.Alive() {
		t.Fatal("this process is not alive")
	}
	for name, p := range map[string]Process{
		"another start time": {PID: me.PID, Start: "some-boot/1"},
		"no process at all":  {},
		"no start time":      {PID: me.PID},
	} {
		if p.Alive() {
			t.Errorf("%s: %+v counts as alive", name, p)
		}
		if err := p.Kill(time.Second); err != nil {
			t.Errorf("%s: killing an exited process: %v", name, err)
		}
	}
}

func TestProcessMemory(t *testing.T) {
	if got := MemoryBytes(os.Getpid()); got < 1<<20 {
		t.Errorf("memory of this process = %d, want at least a MiB", got)
	}
	if got := MemoryBytes(0); got != 0 {
		t.Errorf("memory of no process = %d, want 0", got)
	}
}
