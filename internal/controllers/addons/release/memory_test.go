package release

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestExpectedStateOverridesLaggingWatches(t *testing.T) {
	now := time.Unix(1000, 0)
	left := tool.State{Revision: 2}
	key := client.ObjectKey{Name: "a"}
	for name, tt := range map[string]struct {
		observed tool.State
		at       time.Time
		want     int
		kept     bool
	}{
		"a watch that lags":      {tool.State{Revision: 1}, now.Add(time.Second), 2, true},
		"one that caught up":     {tool.State{Revision: 2}, now.Add(time.Second), 2, false},
		"one that is ahead":      {tool.State{Revision: 3}, now.Add(time.Second), 3, false},
		"one that lags too long": {tool.State{Revision: 1}, now.Add(expectFor), 1, false},
	} {
		var m memory
		m.setExpected(key, left, now)
		if got := m.expected(key, tt.observed, tt.at); got.Revision != tt.want {
			t.Errorf("%s: revision %d, want %d", name, got.Revision, tt.want)
		}
		if kept := !m.expect.Get(key).until.IsZero(); kept != tt.kept {
			t.Errorf("%s: the expectation is kept: %t", name, kept)
		}
	}
	var empty memory
	if got := empty.expected(key, tool.State{Revision: 1}, now); got.Revision != 1 {
		t.Errorf("revision %d without an expectation", got.Revision)
	}
}

func TestKnowledgeIsOfOneRecordAndConnection(t *testing.T) {
	var m memory
	key, through := client.ObjectKey{Name: "a"}, &workload.Cluster{}
	m.update(key, func(k *knowledge) { k.stamp, k.through, k.changed = "s", through, true })
	for _, tt := range []struct {
		stamp   string
		through *workload.Cluster
		want    bool
	}{
		{"s", through, true}, {"t", through, false}, {"s", &workload.Cluster{}, false}, {"s", nil, false},
	} {
		if got := m.get(key, tt.stamp, tt.through).changed; got != tt.want {
			t.Errorf("stamp %q, the same connection: %t: known: %t", tt.stamp, tt.through == through, got)
		}
	}
	m.forget(key)
	if m.get(key, "s", through).changed {
		t.Error("a forgotten release is known")
	}
}

func TestChangesMatterToWhatWasChecked(t *testing.T) {
	key := client.ObjectKey{Name: "a"}
	for name, tt := range map[string]struct {
		known               knowledge
		statusOnly          bool
		matters, specChange bool
	}{
		"nothing was checked":              {knowledge{}, false, false, false},
		"the health, by a status":          {knowledge{health: &tool.Health{}}, true, true, false},
		"the health, by a spec":            {knowledge{health: &tool.Health{}}, false, true, true},
		"drift, by a status":               {knowledge{drift: &[]tool.Change{}}, true, false, false},
		"drift, by a spec":                 {knowledge{drift: &[]tool.Change{}}, false, true, true},
		"a status after an earlier change": {knowledge{drift: &[]tool.Change{}, specChanged: true}, true, false, true},
	} {
		var m memory
		m.update(key, func(k *knowledge) { *k = tt.known })
		if got := m.markChanged(key, tt.statusOnly); got != tt.matters {
			t.Errorf("%s: matters: %t", name, got)
		}
		if got := m.known.Get(key).specChanged; got != tt.specChange {
			t.Errorf("%s: spec changed: %t", name, got)
		}
	}
	var empty memory
	if empty.markChanged(key, false) {
		t.Error("a change of an unknown release matters")
	}
}
