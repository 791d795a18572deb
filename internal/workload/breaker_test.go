package workload

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/bounded"
)

var errRefused = errors.New("connection refused")

func TestUnresponsiveClusterIsSkipped(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	b := newBreaker(client.ObjectKey{Name: "c"}, now)
	refuses := func(want bool) {
		t.Helper()
		if err := b.allow(); (err != nil) != want {
			t.Fatalf("allow() = %v, want an error: %t", err, want)
		}
	}
	b.failed(errRefused)
	b.failed(errRefused)
	refuses(false)
	b.failed(errRefused)
	refuses(true)

	t.Log("after the pause one caller is let through, and no other until it reports")
	now.Step(firstPause)
	refuses(false)
	refuses(true)
	b.failed(bounded.ErrTimeout)

	t.Log("the next pause is longer")
	now.Step(firstPause)
	refuses(true)
	now.Step(firstPause)
	refuses(false)

	t.Log("one who was let through and never came back does not lock everybody out")
	now.Step(2 * firstPause)
	refuses(false)

	b.answered()
	refuses(false)
	refuses(false)

	t.Log("one request without an answer is enough")
	b.failed(bounded.ErrTimeout)
	refuses(true)
	if err := b.allow(); !errors.Is(err, bounded.ErrTimeout) {
		t.Errorf("allow() = %v, want the cause in it", err)
	}
}

func TestPausesAreBounded(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	b := newBreaker(client.ObjectKey{Name: "c"}, now)
	for range 20 {
		b.failed(bounded.ErrTimeout)
		now.Step(maxPause)
	}
	if b.pause != maxPause {
		t.Errorf("pause = %s, want %s", b.pause, maxPause)
	}
}
