package fleet

import "testing"

// TestDecide covers every combination of facts: each rule lists those that it is for, and no
// combination may be left over or be claimed twice.
func TestDecide(t *testing.T) {
	rules := []struct {
		name string
		when func(facts) bool
		want action
	}{
		{"a Kustomization that is being deleted is left alone", func(f facts) bool { return f.kustomization == releasing }, keep},
		{"a namespace that isn't connected keeps its clusters, but not what applies them", func(f facts) bool {
			return !f.open && (f.kustomization == applied || f.kustomization == suspended)
		}, forget},
		{"a namespace that isn't connected gets nothing", func(f facts) bool { return !f.open && f.kustomization == unapplied }, keep},
		{"an unreadable repository changes nothing", func(f facts) bool {
			return f.open && f.kustomization != releasing && (f.git == unknown || f.git == broken)
		}, keep},
		{"a cluster in Git is applied", func(f facts) bool {
			return f.open && f.kustomization != releasing && f.git == present && !f.confirmed
		}, apply},
		{"a confirmation of a cluster that is in Git again is withdrawn", func(f facts) bool {
			return f.open && f.kustomization != releasing && f.git == present && f.confirmed && !f.removing
		}, withdraw},
		{"a command that deletes a cluster confirms before Flux fetches its commit", func(f facts) bool {
			return f.open && f.kustomization != releasing && f.git == present && f.confirmed && f.removing
		}, apply},
		{"a cluster that is neither in Git nor from Git is nobody's business", func(f facts) bool {
			return f.open && f.git == absent && f.kustomization == unapplied
		}, keep},
		{"a suspended Kustomization is kept, because Flux would leave the cluster behind", func(f facts) bool {
			return f.open && f.git == absent && f.kustomization == suspended
		}, keep},
		{"a removed cluster in use waits for confirmation", func(f facts) bool {
			return f.open && f.git == absent && f.kustomization == applied && f.cluster == used && !f.confirmed
		}, waitForConfirmation},
		{"a removed cluster in use is deleted once that is confirmed", func(f facts) bool {
			return f.open && f.git == absent && f.kustomization == applied && f.cluster == used && f.confirmed
		}, remove},
		{"a removed cluster that nobody uses is deleted", func(f facts) bool {
			return f.open && f.git == absent && f.kustomization == applied && f.cluster != used
		}, remove},
	}
	for _, f := range allFacts() {
		matched := 0
		for _, rule := range rules {
			if !rule.when(f) {
				continue
			}
			matched++
			if got := decide(f); got != rule.want {
				t.Errorf("%s: decide(%+v) = %s, want %s", rule.name, f, got, rule.want)
			}
		}
		if matched != 1 {
			t.Errorf("%d rules match %+v", matched, f)
		}
	}
}

func allFacts() []facts {
	var all []facts
	for git := unknown; git <= present; git++ {
		for kustomization := unapplied; kustomization <= releasing; kustomization++ {
			for cluster := gone; cluster <= deleting; cluster++ {
				for i := range 8 {
					all = append(all, facts{
						git: git, kustomization: kustomization, cluster: cluster, open: i&1 == 0, confirmed: i&2 == 0, removing: i&4 == 0,
					})
				}
			}
		}
	}
	return all
}
