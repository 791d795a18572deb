package confined

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Serve("test", misbehave)
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
	case "ask":
		answer, err := call([]byte("who?"))
		return append([]byte("it is "), answer...), err
	}
	return request, nil
}

func newTestPool(t *testing.T) *Pool {
	p := NewPool("test", Limits{Memory: 384 << 20, Time: 2 * time.Second, Result: 1 << 20, Workers: 2, Idle: time.Minute})
	t.Cleanup(p.Close)
	return p
}

func TestLimitsHold(t *testing.T) {
	p := newTestPool(t)
	for _, what := range []string{"allocate at once", "allocate slowly", "spin", "a large result"} {
		t.Run(what, func(t *testing.T) {
			var exceeded *ExceededError
			if _, err := p.Do(t.Context(), []byte(what), nil); !errors.As(err, &exceeded) {
				t.Errorf("error %v", err)
			}
			if out, err := p.Do(t.Context(), []byte("hello"), nil); err != nil || string(out) != "hello" {
				t.Errorf("the next work: %q, %v", out, err)
			}
		})
	}
}

func TestEndOfAChildIsNotAnExceededLimit(t *testing.T) {
	var exceeded *ExceededError
	if _, err := newTestPool(t).Do(t.Context(), []byte("exit"), nil); err == nil || errors.As(err, &exceeded) {
		t.Errorf("error %v", err)
	}
}

func TestWorkFailsAndAsks(t *testing.T) {
	p := newTestPool(t)
	var failed *FailedError
	if _, err := p.Do(t.Context(), []byte("fail"), nil); !errors.As(err, &failed) || failed.Message != "no" {
		t.Errorf("error %v", err)
	}
	slow := func(question []byte) ([]byte, error) {
		time.Sleep(2500 * time.Millisecond) // The time of the parent doesn't count.
		return []byte("me, " + string(question)), nil
	}
	if out, err := p.Do(t.Context(), []byte("ask"), slow); err != nil || string(out) != "it is me, who?" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := p.Do(t.Context(), []byte("ask"), func([]byte) ([]byte, error) { return nil, errors.New("nobody") }); !errors.As(err, &failed) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Do(ctx, []byte("spin"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestChildrenAreReusedAndLeave(t *testing.T) {
	p := NewPool("test", Limits{Memory: 384 << 20, Time: 10 * time.Second, Result: 1 << 20, Workers: 2, Idle: 100 * time.Millisecond})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if out, err := p.Do(t.Context(), []byte("hello"), nil); err != nil || string(out) != "hello" {
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
