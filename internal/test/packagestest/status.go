package packagestest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Canary is part of all secrets in tests, so that leaks can be found.
const Canary = "canary"

// LintConditions checks rules that hold for the conditions of all kinds.
func LintConditions(t testing.TB, conditions []metav1.Condition) {
	t.Helper()
	for _, c := range conditions {
		if c.Status == "" || c.Reason == "" || c.LastTransitionTime.IsZero() {
			t.Errorf("condition %s is incomplete: %+v", c.Type, c)
		}
		if strings.Contains(c.Message, Canary) {
			t.Errorf("condition %s contains a secret", c.Type)
		}
	}
}

// Events records events by the name of their object.
type Events struct {
	record.EventRecorder

	mu       sync.Mutex
	recorded map[string][]string
}

// Event implements record.EventRecorder.
func (e *Events) Event(o runtime.Object, kind, reason, message string) {
	e.Eventf(o, kind, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (e *Events) Eventf(o runtime.Object, _, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recorded == nil {
		e.recorded = map[string][]string{}
	}
	name := o.(client.Object).GetName()
	e.recorded[name] = append(e.recorded[name], reason+": "+fmt.Sprintf(format, args...))
}

// Of returns the events of an object, one per line.
func (e *Events) Of(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.recorded[name], "\n")
}
