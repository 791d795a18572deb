package catalog

import "testing"

func TestFacilitiesBelongToOneMetro(t *testing.T) {
	seen := map[string]string{}
	for _, m := range Metros() {
		if len(m.Facilities) == 0 {
			t.Errorf("metro %q has no facility, so devices there would have none", m.Code)
		}
		for _, f := range m.Facilities {
			if other, ok := seen[f]; ok {
				t.Errorf("facility %q is in metros %q and %q", f, other, m.Code)
			}
			seen[f] = m.Code
			if got, _ := MetroOf(f); got.Code != m.Code {
				t.Errorf("MetroOf(%q) = %q, want %q", f, got.Code, m.Code)
			}
		}
	}
}

func TestPlansHaveSizes(t *testing.T) {
	for _, p := range Plans() {
		if p.CPUs < 1 || p.MemoryBytes < gib {
			t.Errorf("plan %q has %d CPUs and %d bytes", p.Slug, p.CPUs, p.MemoryBytes)
		}
	}
	for old, slug := range oldPlans {
		if p, ok := FindPlan(old); !ok || p.Slug != slug {
			t.Errorf("FindPlan(%q) = %q, %v; want %q", old, p.Slug, ok, slug)
		}
	}
}
