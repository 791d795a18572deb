package plane

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// startHere runs a component in this process.
func startHere(t *testing.T, run func(context.Context, io.Writer) error, probe func(context.Context) error) *child {
	t.Helper()
	c := newChild(Component{Name: "here", Run: run, Probe: probe}, newLogFile(filepath.Join(t.TempDir(), "log")), func() {})
	c.start()
	t.Cleanup(c.stop)
	return c
}

func always(context.Context) error { return nil }
func never(context.Context) error  { return errors.New("no response") }

func TestInProcessComponent(t *testing.T) {
	starts := make(chan struct{}, 2)
	c := startHere(t, func(ctx context.Context, _ io.Writer) error {
		starts <- struct{}{}
		<-ctx.Done()
		return nil
	}, always)
	<-c.served
	<-starts
	if s := c.snapshot(); !s.Ready() || s.PID != 0 || s.Started.IsZero() {
		t.Errorf("it is %+v", s)
	}
	c.restart()
	<-starts
	c.stop()
	if s := c.snapshot(); s.State != Stopped || s.Restarts != 0 {
		t.Errorf("after its end it is %+v", s)
	}
}

func TestFailingInProcessComponent(t *testing.T) {
	for name, tt := range map[string]struct {
		run  func(context.Context, io.Writer) error
		want string
	}{
		"an error": {func(context.Context, io.Writer) error { return errors.New("no such luck") }, "no such luck"},
		"a panic":  {func(context.Context, io.Writer) error { panic("no such luck") }, "panic: no such luck"},
	} {
		c := startHere(t, tt.run, never)
		<-c.hopeless
		e := c.startError()
		if !strings.Contains(e.Reason, tt.want) || !strings.Contains(strings.Join(e.LogTail, "\n"), tt.want) {
			t.Errorf("%s: %v", name, e)
		}
		c.stop()
	}
}
