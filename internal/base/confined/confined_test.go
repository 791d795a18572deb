package confined

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/process"
)

func TestMain(m *testing.M) {
	Serve("test", misbehave)
	if os.Getenv(parentVariable) != "" {
		beParent()
	}
	os.Exit(m.Run())
}

// misbehave does what the request says.
func misbehave(request []byte, call Call) ([]byte, error) {
	switch string(request) {
	case "allocate at once":
		return []byte(strings.Repeat("x", 2_000_000_000)[:1]), nil
	case "allocate slowly":
		var all [][]byte
		for {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			all = append(all, block)
			if len(all) == 1<<14 {
				return nil, nil
			}
		}
	case "spin":
		var n atomic.Int64
		for {
			n.Add(1)
		}
	case "exit":
		os.Exit(0)
	case "a large result":
		return make([]byte, 2<<20), nil
	case "fail":
		return nil, errors.New("no")
	case "ask and spin":
		var n atomic.Int64
		for {
			for range 100_000_000 {
				n.Add(1)
			}
			if _, err := call([]byte("who?")); err != nil {
				return nil, err
			}
		}
	case "ask without end":
		for {
			if _, err := call([]byte("who?")); err != nil {
				return nil, err
			}
		}
	case "who are you?":
		return []byte(strconv.Itoa(os.Getpid())), nil
	case "ask":
		answer, err := call([]byte("who?"))
		return append([]byte("it is "), answer...), err
	}
	return request, nil
}

var testLimits = Limits{
	Memory: 384 << 20, Time: 2 * time.Second, Calls: 1000, Total: time.Minute, Result: 1 << 20, Workers: 2, Idle: time.Minute,
}

// ask is a task whose calls are answered.
func ask(request string, answer Call) Task {
	t := Task{Request: []byte(request)}
	if answer != nil {
		t.Answer = func(_ context.Context, question []byte) ([]byte, error) { return answer(question) }
	}
	return t
}

func newTestPool(t *testing.T) *Pool {
	p := NewPool("test", testLimits)
	t.Cleanup(p.Close)
	return p
}

func TestLimitsHold(t *testing.T) {
	p := newTestPool(t)
	calls := 0
	quick := func([]byte) ([]byte, error) { calls++; return nil, nil }
	for _, what := range []string{"allocate at once", "allocate slowly", "spin", "ask and spin", "ask without end", "a large result"} {
		t.Run(what, func(t *testing.T) {
			var exceeded *ExceededError
			if _, err := p.Do(t.Context(), ask(what, quick)); !errors.As(err, &exceeded) {
				t.Errorf("got error %v, want a %T", err, exceeded)
			}
			if out, err := p.Do(t.Context(), ask("hello", nil)); err != nil || string(out) != "hello" {
				t.Errorf("the next work: %q, %v", out, err)
			}
		})
	}
	if calls > 1000+100 {
		t.Errorf("%d calls were answered", calls)
	}
}

func TestEndOfAChildIsNotAnExceededLimit(t *testing.T) {
	var exceeded *ExceededError
	if _, err := newTestPool(t).Do(t.Context(), ask("exit", nil)); err == nil || errors.As(err, &exceeded) {
		t.Errorf("error %v", err)
	}
}

func TestWorkFailsAndAsks(t *testing.T) {
	p := newTestPool(t)
	var failed *FailedError
	if _, err := p.Do(t.Context(), ask("fail", nil)); !errors.As(err, &failed) || failed.Message != "no" {
		t.Errorf("got error %v, want a %T", err, failed)
	}
	slow := func(question []byte) ([]byte, error) {
		time.Sleep(2500 * time.Millisecond) // The time of the parent doesn't count.
		return []byte("me, " + string(question)), nil
	}
	if out, err := p.Do(t.Context(), ask("ask", slow)); err != nil || string(out) != "it is me, who?" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := p.Do(t.Context(), ask("ask", func([]byte) ([]byte, error) { return nil, errors.New("nobody") })); !errors.As(err, &failed) {
		t.Errorf("got error %v, want a %T", err, failed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Do(ctx, ask("spin", nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestChildrenAreReusedAndLeave(t *testing.T) {
	limits := testLimits
	limits.Time, limits.Idle = 10*time.Second, 100*time.Millisecond
	p := NewPool("test", limits)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if out, err := p.Do(t.Context(), ask("hello", nil)); err != nil || string(out) != "hello" {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	group.Wait()
	p.mu.Lock()
	kept := len(p.idle)
	p.mu.Unlock()
	if kept == 0 || kept > 2 {
		t.Errorf("%d children are kept", kept)
	}
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		p.mu.Lock()
		kept = len(p.idle)
		p.mu.Unlock()
		if kept == 0 {
			return
		}
	}
	t.Error("idle children don't leave")
}

func TestWorkAndAnswersHaveATotalTime(t *testing.T) {
	limits := testLimits
	limits.Total = 300 * time.Millisecond
	p := NewPool("test", limits)
	t.Cleanup(p.Close)
	slow := func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	var exceeded *ExceededError
	if _, err := p.Do(t.Context(), Task{Request: []byte("ask"), Answer: slow}); !errors.Is(err, errTotal) || errors.As(err, &exceeded) {
		t.Errorf("got error %v, want %v", err, errTotal)
	}
}

func TestOwnersTakeTurns(t *testing.T) {
	p := newTestPool(t)
	asked, release := make(chan struct{}, 2), make(chan struct{})
	slow := func(ctx context.Context, _ []byte) ([]byte, error) {
		asked <- struct{}{}
		<-release
		return nil, nil
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := p.Do(t.Context(), Task{Owner: "a", Request: []byte("ask"), Answer: slow}); err != nil {
				t.Error(err)
			}
		})
	}
	<-asked
	if out, err := p.Do(t.Context(), Task{Owner: "b", Request: []byte("hello")}); err != nil || string(out) != "hello" {
		t.Errorf("another owner: %q, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Do(ctx, Task{Owner: "a", Request: []byte("hello")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	if len(asked) > 0 {
		t.Error("one owner has both children")
	}
	close(release)
	group.Wait()
	if len(p.busy) > 0 {
		t.Errorf("%d owners are still busy", len(p.busy))
	}
}

func TestCheckOfFinishedWorkEndsNothing(t *testing.T) {
	limits := testLimits
	limits.Time = time.Nanosecond
	w := &worker{limits: limits, process: &os.Process{Pid: 1 << 30}}
	s := &watch{worker: w, timer: time.NewTimer(time.Hour)}
	s.check()
	if w.late.Load() {
		t.Error("work without a clock is late")
	}
	s.pause()
	s.check()
	if w.late.Load() {
		t.Error("finished work is late")
	}
}

const parentVariable = "DROVER_CONFINED_TEST_PARENT"

// beParent prints the ID of a child that never ends its work.
func beParent() {
	p := NewPool("test", testLimits)
	pid, err := p.Do(context.Background(), Task{Request: []byte("who are you?")})
	fmt.Println(string(pid), err)
	_, _ = p.Do(context.Background(), Task{Request: []byte("spin")})
}

func TestChildEndsWithItsParent(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), parentVariable+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var pid int
	if _, err := fmt.Sscanf(line, "%d <nil>", &pid); err != nil {
		t.Fatalf("the parent printed %q", line)
	}
	child := process.Identify(pid)
	if err = errors.Join(err, parent.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !child.Wait(10 * time.Second) {
		_ = child.Kill(time.Second)
		t.Error("the child works on without its parent")
	}
}
