package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/demand"
)

var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

// claimOf returns a claim of a Cluster that is so many minutes old.
func claimOf(uid string, age, needs int) Claim {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(-age) * time.Minute))}}
	out := Claim{Cluster: c}
	if needs > 0 {
		out.Needs = smalls(needs)
	}
	return out
}

func granted(c Claim, has int) Claim {
	c.Granted = true
	if has > 0 {
		c.Has = smalls(has)
	}
	return c
}

func smalls(n int) []demand.Machines {
	return []demand.Machines{{Plan: demand.LocalPlan, Metro: demand.LocalMetro, Count: n}}
}

// room answers as the service does: each demand is available in addition to those before it.
type room struct {
	free     int
	requests int
	fails    error
}

func (r *room) answer(demands []client.Demand) []bool {
	free := r.free
	var out []bool
	for _, d := range demands {
		fits := d.Quantity <= free
		if fits {
			free -= d.Quantity
		}
		out = append(out, fits)
	}
	return out
}

func TestFitting(t *testing.T) {
	for name, tt := range map[string]struct {
		claims  []Claim
		free    int
		want    []types.UID
		blocked types.UID
	}{
		"nobody":                                   {},
		"one that fits":                            {[]Claim{claimOf("a", 1, 3)}, 3, []types.UID{"a"}, ""},
		"one that does not":                        {[]Claim{claimOf("a", 1, 3)}, 2, nil, "a"},
		"the oldest gets the last machines":        {[]Claim{claimOf("young", 1, 2), claimOf("old", 2, 2)}, 3, []types.UID{"old"}, "young"},
		"a small one does not overtake":            {[]Claim{claimOf("small", 1, 1), claimOf("large", 2, 5)}, 3, nil, "large"},
		"both fit":                                 {[]Claim{claimOf("young", 1, 2), claimOf("old", 2, 2)}, 4, []types.UID{"old", "young"}, ""},
		"of the same second, the UID decides":      {[]Claim{claimOf("b", 1, 2), claimOf("a", 1, 2)}, 2, []types.UID{"a"}, "b"},
		"a granted one keeps what it lacks":        {[]Claim{claimOf("old", 9, 2), granted(claimOf("new", 1, 2), 1)}, 3, nil, "old"},
		"a granted one keeps even part of it":      {[]Claim{claimOf("old", 9, 1), granted(claimOf("new", 1, 3), 1)}, 1, nil, "old"},
		"a granted one with all of its machines":   {[]Claim{claimOf("old", 9, 2), granted(claimOf("new", 1, 0), 3)}, 2, []types.UID{"old"}, ""},
		"one that needs no machines fits anywhere": {[]Claim{claimOf("a", 1, 0)}, 0, []types.UID{"a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			queue := newQueue(tt.claims)
			got, blocked := queue.fitting((&room{free: tt.free}).answer(queue.demands()))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
			if blocked == nil && tt.blocked != "" || blocked != nil && blocked.Cluster.UID != tt.blocked {
				t.Errorf("blocked %v, want %q", blocked, tt.blocked)
			}
		})
	}
}

func TestBeyond(t *testing.T) {
	large := claimOf("large", 1, 9)
	queue := newQueue([]Claim{large, granted(claimOf("a", 3, 1), 2), granted(claimOf("b", 2, 0), 3)})
	if diff := cmp.Diff(smalls(4), queue.beyond(&large)); diff != "" {
		t.Errorf("needed without others (-want +got):\n%s", diff)
	}
}

func TestShortageMessages(t *testing.T) {
	for want, s := range map[string]Shortage{
		"Waiting for machines: 3 of plan local.small in da are not available":                               {Needs: smalls(3)},
		"Waiting for machines: 3 of plan local.small in da are not available, or older clusters come first": {Needs: smalls(3), Behind: true},
		"Waiting for machines: 3 of plan local.small in da are not available, even without other clusters":  {Needs: smalls(3), Behind: true, TooLarge: true},
	} {
		if got := s.Message(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
