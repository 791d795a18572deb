package fresh

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func at(version string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}}
}

func TestCacheIsStaleUntilItHasTheWrite(t *testing.T) {
	var w Writes
	if w.Stale(at("5")) {
		t.Error("nothing was written, and the cache is stale")
	}
	w.Note(at("10"))
	for _, tc := range []struct {
		cached string
		want   bool
	}{{"9", true}, {"5", true}, {"10", false}, {"5", false}} { // what was seen once is not waited for again
		if got := w.Stale(at(tc.cached)); got != tc.want {
			t.Errorf("with version %s in the cache, stale is %t", tc.cached, got)
		}
	}
	w.Note(at("10"))
	if w.Stale(at("11")) {
		t.Error("somebody else has written since, and the cache is stale")
	}
}

func TestWritesAreKeptUntilObserved(t *testing.T) {
	var w Writes
	w.Note(at("10"))
	if !w.Wrote(at("10")) || w.Wrote(at("11")) || w.Wrote(at("")) {
		t.Error("only what was written is known")
	}
	w.Stale(at("10"))
	if w.Wrote(at("10")) {
		t.Error("it is still kept")
	}
}

func TestUnorderedVersionsAreFresh(t *testing.T) {
	var w Writes
	w.Note(at("10"))
	if w.Stale(at("x")) {
		t.Error("it would be waited for in vain")
	}
}

func TestForgottenWritesAreNotAwaited(t *testing.T) {
	var w Writes
	w.Note(at("10"))
	w.Forget(client.ObjectKeyFromObject(at("")))
	if w.Stale(at("5")) {
		t.Error("the object was made anew, and the cache is stale")
	}
}
