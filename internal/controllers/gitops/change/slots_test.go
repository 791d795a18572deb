package change

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestOneChangeAtATimeUsesARepository(t *testing.T) {
	request := func(name string) ctrl.Request {
		return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
	}
	var woken []string
	s := &slots{wake: func(r ctrl.Request) { woken = append(woken, r.Name) }}
	if !s.acquire("one", request("a")) || !s.acquire("two", request("b")) {
		t.Fatal("a free repository can't be used")
	}
	if s.acquire("one", request("c")) || s.acquire("one", request("d")) {
		t.Fatal("a repository is used twice")
	}
	s.release("two")
	if len(woken) > 0 {
		t.Errorf("%q are woken by another repository", woken)
	}
	s.release("one")
	if diff := cmp.Diff([]string{"c", "d"}, woken); diff != "" {
		t.Errorf("woken (-want +got)\n%s", diff)
	}
	if !s.acquire("one", request("c")) {
		t.Error("a released repository can't be used")
	}
}
