package plane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelevantLinesOmitStackTraces(t *testing.T) {
	log := strings.Split(`starting
panic: no space left on device

goroutine 52 [running]:
go.uber.org/zap.(*Logger).Panic(0xc0004, {0x1a, 0x2})
	go.uber.org/zap@v1.27.0/logger.go:285 +0x51
created by main.run in goroutine 1
	main.go:75 +0x1a5`, "\n")
	if diff := cmp.Diff([]string{"starting", "panic: no space left on device"}, meaningfulLines(log, 5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"panic: no space left on device"}, meaningfulLines(log, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStartErrorSuggestsARemedy(t *testing.T) {
	e := &StartError{Component: "etcd", Reason: "exit status 2", Hint: "free some space", Log: "/x/etcd.log", LogTail: []string{"boom"}}
	want := "etcd did not start (exit status 2): free some space; its log is /x/etcd.log, which ends with:\n  boom"
	if got := e.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
