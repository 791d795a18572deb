package web

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// told returns the events that wait for a page.
func told(p *page) string {
	var out []string
	for len(p.events) > 0 {
		e := <-p.events
		out = append(out, fmt.Sprintf("%s %s", e.kind, e.data))
	}
	return strings.Join(out, ", ")
}

func mustJoin(t *testing.T, h *hub, lastID string) (*page, []event) {
	t.Helper()
	p, missed, err := h.join(lastID)
	if err != nil {
		t.Fatal(err)
	}
	return p, missed
}

func TestPagesGetRowsAndThenOnlyChanges(t *testing.T) {
	h := newHub()
	h.put("a", []byte(`1`))
	h.put("b", []byte(`2`))
	p, missed := mustJoin(t, h, "")
	if len(missed) != 1 || missed[0].kind != "snapshot" || string(missed[0].data) != `[1,2]` {
		t.Fatalf("a new page starts with %v", missed)
	}
	h.put("a", []byte(`1`))
	h.put("b", []byte(`3`))
	h.drop("a")
	h.drop("unknown")
	if got, want := told(p), `row 3, gone "a"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPagesResumeWithoutGaps(t *testing.T) {
	h := newHub()
	h.put("a", []byte(`1`))
	_, first := mustJoin(t, h, "")
	seen := h.id(first[0].number)
	h.put("a", []byte(`2`))
	h.put("b", []byte(`3`))
	if _, missed := mustJoin(t, h, seen); len(missed) != 2 || string(missed[0].data) != `2` || string(missed[1].data) != `3` {
		t.Errorf("missed %v, want exactly 2 and 3", missed)
	}
	if _, missed := mustJoin(t, h, h.id(h.last)); len(missed) != 0 {
		t.Errorf("missed %v, want nothing", missed)
	}
	for _, id := range []string{"", "x", newHub().id(1), h.id(h.last + 1), h.id(-1), h.epoch + "."} {
		if _, missed := mustJoin(t, h, id); len(missed) != 1 || missed[0].kind != "snapshot" {
			t.Errorf("%q: missed %v, want a snapshot", id, missed)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := newHub()
	for i := range 3 * history {
		h.put("a", fmt.Appendf(nil, "%d", i))
	}
	if len(h.recent) > history {
		t.Errorf("%d events are kept, want at most %d", len(h.recent), history)
	}
	if _, missed := mustJoin(t, h, h.id(1)); len(missed) != 1 || missed[0].kind != "snapshot" {
		t.Errorf("a page that missed more than is kept gets %d events, want a snapshot", len(missed))
	}
	if _, missed := mustJoin(t, h, h.id(h.last-100)); len(missed) != 100 {
		t.Errorf("missed %d events, want 100", len(missed))
	}
}

func TestSlowPagesAreDropped(t *testing.T) {
	h := newHub()
	slow, _ := mustJoin(t, h, "")
	fast, _ := mustJoin(t, h, "")
	for i := range backlog + 1 {
		h.put("a", fmt.Appendf(nil, "%d", i))
		<-fast.events
	}
	if len(h.pages) != 1 {
		t.Fatalf("%d pages are left, want 1", len(h.pages))
	}
	for range backlog {
		<-slow.events
	}
	if _, open := <-slow.events; open {
		t.Error("the slow page waits forever")
	}
	h.put("a", []byte(`x`))
	if got := told(fast); got != "row x" {
		t.Errorf("the other page got %s", got)
	}
}

func TestPagesAreLimited(t *testing.T) {
	h := newHub()
	var last *page
	for range maxPages {
		last, _ = mustJoin(t, h, "")
	}
	if _, _, err := h.join(""); !errors.Is(err, errTooManyPages) {
		t.Errorf("got %v, want %v", err, errTooManyPages)
	}
	h.leave(last)
	mustJoin(t, h, "")
}
