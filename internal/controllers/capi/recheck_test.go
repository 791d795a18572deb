package capi

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func TestRecheckIntervalsGrow(t *testing.T) {
	began := time.Now()
	for _, tt := range []struct{ passed, interval, want time.Duration }{
		{0, 20 * time.Second, time.Second},
		{3 * time.Second, 20 * time.Second, time.Second},
		{20 * time.Second, 20 * time.Second, 2 * time.Second},
		{time.Minute, 20 * time.Second, 6 * time.Second},
		{10 * time.Minute, 20 * time.Second, 20 * time.Second},
		{10 * time.Minute, 15 * time.Second, 15 * time.Second},
	} {
		if got := recheck(polling{began: began}, began.Add(tt.passed), tt.interval); got != tt.want {
			t.Errorf("%s after the beginning, %s became %s, want %s", tt.passed, tt.interval, got, tt.want)
		}
	}
}

func TestOnlyPollingIsAccelerated(t *testing.T) {
	q, one := newPacedQueue(t, 10), named("one")
	now := time.Now()
	for interval, want := range map[time.Duration]time.Duration{
		20 * time.Second:       recheckFirst,
		30 * time.Second:       recheckFirst,
		5 * time.Minute:        5 * time.Minute,
		100 * time.Millisecond: 100 * time.Millisecond,
	} {
		if got := q.sooner(one, interval, now); got != want {
			t.Errorf("%s became %s, want %s", interval, got, want)
		}
	}
}

func TestPollingRestartsAfterAPause(t *testing.T) {
	q, one := newPacedQueue(t, 10), named("one")
	now := time.Now()
	q.sooner(one, 20*time.Second, now)
	if got := q.sooner(one, 20*time.Second, now.Add(50*time.Second)); got != 5*time.Second {
		t.Errorf("after 50 s of polling the interval is %s", got)
	}
	if got := q.sooner(one, 20*time.Second, now.Add(10*time.Minute)); got != recheckFirst {
		t.Errorf("after a pause the interval is %s", got)
	}
}

func TestDisabledPollingMatchesUpstream(t *testing.T) {
	q := newPacedQueue(t, 0)
	if got := q.sooner(named("one"), 20*time.Second, time.Now()); got != 20*time.Second {
		t.Errorf("the interval is %s", got)
	}
}

func TestPollingReconcilerIsRequeuedEarly(t *testing.T) {
	q, one := newPacedQueue(t, 1), named("one")
	q.AddWithOpts(priorityqueue.AddOpts{After: 20 * time.Second}, one)
	if took := q.look(t, one); took < recheckFirst/2 || took > 10*recheckFirst {
		t.Errorf("got a request after %s", took)
	}
}

func TestFinishedPollingIsForgotten(t *testing.T) {
	q := newPacedQueue(t, 10)
	now := time.Now()
	q.sooner(named("old"), 20*time.Second, now)
	q.sooner(named("new"), 20*time.Second, now.Add(2*time.Minute))
	q.handedOut(named("new"), now.Add(2*time.Minute))
	if len(q.polled) != 1 {
		t.Errorf("%d are remembered, want 1", len(q.polled))
	}
}
