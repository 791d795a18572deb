package install

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// locked is a registry that requires a password.
type locked struct {
	charts
	password string
}

func (l *locked) Resolve(ctx context.Context, ref artifact.Ref) (artifact.Resolved, error) {
	resolved, err := l.charts.Resolve(ctx, ref)
	if ref.Access.Password != l.password {
		return artifact.Resolved{}, artifact.ErrForbidden
	}
	return resolved, err
}

func TestChartIsRequestedAgainWithOtherCredentials(t *testing.T) {
	woken := make(chan client.ObjectKey, 1)
	registry := &locked{password: "canary"}
	registry.archive = artifacttest.Chart(t, "hello", "1.0.0", map[string]string{"values.yaml": "defaultNamespace: from-chart\n"})
	n := &namespaces{
		charts: registry, clock: clocktesting.NewFakePassiveClock(time.Now()), stop: t.Context(),
		wake: func(key client.ObjectKey) { woken <- key },
	}
	who := client.ObjectKey{Name: "my"}
	ref := artifact.Ref{URL: "oci://charts.example.com", Name: "hello", Version: "sha256:1"}
	if answer, _, err := n.of(ref, who); answer != nil || err != nil {
		t.Fatalf("of() = %v, %v before the registry was queried", answer, err)
	}
	<-woken
	for range 2 {
		if _, pause, err := n.of(ref, who); err == nil || pause != firstRetry {
			t.Errorf("of() = %s, %v after access was denied", pause, err)
		}
	}
	if got := registry.asked.Load(); got != 1 {
		t.Errorf("the registry was queried %d times, want once", got)
	}
	ref.Access.Password = "canary"
	if _, pause, _ := n.of(ref, who); pause != 0 {
		t.Errorf("with another password it is queried after %s, want at once", pause)
	}
	<-woken
	if answer, _, err := n.of(ref, who); err != nil || answer == nil || *answer != "from-chart" {
		t.Errorf("of() = %v, %v", answer, err)
	}
}
