package local

import (
	"context"
	"errors"
	"testing"
)

func TestQueueRunsInOrder(t *testing.T) {
	m := &machine{}
	first, second, third := m.queue(), m.queue(), m.queue()
	if err := first.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.wait(impatient); !errors.Is(err, context.Canceled) {
		t.Fatalf("the second got its turn before the first was done: %v", err)
	}
	second.done() // given up
	if err := third.wait(impatient); !errors.Is(err, context.Canceled) {
		t.Fatalf("the third got its turn before the first was done: %v", err)
	}
	first.done()
	if err := third.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}
