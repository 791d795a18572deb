// Package rollout decides which clusters may change now. It consists of pure functions of facts and
// the current time.
//
//	           all of a wave ready          soaked, waves left
//	Progressing ─────────────▶ Soaking ─────────────────────────▶ Progressing (next wave)
//	   │   ▲                                        all waves done ▶ Complete
//	   │   └────────── resumed ──────────┐
//	   ├── too many failed ──▶ Paused ───┤
//	   └── too many failed ──▶ RollingBack ── all back ──▶ Paused
//
// A new revision restarts the rollout from any phase. Clusters that already have it count as done.
// Start with Decide.
package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/elapsed"
)

// Cluster is the progress of one cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// OnTarget reports that the cluster was given the current revision, Ready that it runs it, and
	// Failed that it could not.
	OnTarget, Ready, Failed bool
	// ReadySince is set if the cluster is ready.
	ReadySince time.Time
	// RolledBack reports that the cluster runs the last good revision and is ready, or has no
	// release.
	RolledBack bool
}

// Input has the facts of a decision.
type Input struct {
	// Clusters are sorted by name.
	Clusters []Cluster
	// Spec is nil if there are no waves.
	Spec *addonsv1.Rollout
	// Status is the result of the last decision.
	Status *addonsv1.RolloutStatus
	// Revision is a digest of what is rolled out.
	Revision string
	// Resume is the value of the resume annotation, or empty.
	Resume string
	Now    time.Time
}

// Plan is what may change now.
type Plan struct {
	// Allowed are the names of clusters that may get the current revision.
	Allowed map[string]bool
	// Back reports that all clusters return to the last good revision.
	Back bool
	// Status is the new status.
	Status *addonsv1.RolloutStatus
	// Next is when to decide again if nothing changes, or 0.
	Next time.Duration
}

// Decide returns what may change now.
func Decide(in Input) Plan {
	if in.Spec == nil {
		return Plan{Allowed: names(in.Clusters)}
	}
	waves := Waves(in.Clusters, in.Spec.Waves)
	d := decision{Input: in, waves: waves, status: begin(in)}
	d.count()
	next := d.advance()
	if d.changed() {
		d.status.Since = ptr.To(metav1.NewTime(in.Now).Rfc3339Copy())
	}
	return Plan{Allowed: d.allowed(), Back: d.status.Phase == addonsv1.RolloutRollingBack, Status: d.status, Next: next}
}

// decision is a Plan in progress.
type decision struct {
	Input

	waves  [][]Cluster
	status *addonsv1.RolloutStatus
}

// changed reports whether the phase is new, or began in the future by a clock that was ahead.
func (d *decision) changed() bool {
	was, is := d.Status, d.status
	return was == nil || was.Phase != is.Phase || was.Revision != is.Revision || was.Wave != is.Wave ||
		was.Since != nil && elapsed.Ahead(was.Since.Time, d.Now)
}

// begin returns the status to continue from: the last one, or that of a new rollout.
func begin(in Input) *addonsv1.RolloutStatus {
	was := in.Status
	switch {
	case was == nil:
		return &addonsv1.RolloutStatus{Revision: in.Revision, Wave: 1, Phase: addonsv1.RolloutProgressing, Resumed: in.Resume}
	case was.Revision != in.Revision:
		good := was.LastGood
		if was.Phase == addonsv1.RolloutComplete {
			good = was.Revision
		}
		return &addonsv1.RolloutStatus{
			Revision: in.Revision, LastGood: good, Wave: 1, Phase: addonsv1.RolloutProgressing, Resumed: in.Resume,
		}
	default:
		return was.DeepCopy()
	}
}

func (d *decision) count() {
	d.status.Waves, d.status.Updated, d.status.Failed = int32(len(d.waves)), 0, 0
	for _, c := range d.Clusters {
		if c.OnTarget && c.Ready {
			d.status.Updated++
		}
		if c.OnTarget && c.Failed {
			d.status.Failed++
		}
	}
}

// advance moves between phases and returns when to decide again.
func (d *decision) advance() time.Duration {
	s := d.status
	if d.Resume != s.Resumed {
		s.Resumed = d.Resume
		if d.Resume != "" && (s.Phase == addonsv1.RolloutPaused || s.Phase == addonsv1.RolloutRollingBack) {
			s.Phase, s.Tolerated = addonsv1.RolloutProgressing, s.Failed
		}
	}
	switch s.Phase {
	case addonsv1.RolloutComplete, addonsv1.RolloutPaused:
		return 0
	case addonsv1.RolloutRollingBack:
		if all(d.Clusters, func(c Cluster) bool { return c.RolledBack }) {
			s.Phase = addonsv1.RolloutPaused
		}
		return 0
	}
	if s.Failed >= s.Tolerated+ptr.Deref(d.Spec.PauseAfter, 1) {
		s.Phase = addonsv1.RolloutPaused
		if d.Spec.OnFailure == Rollback && s.LastGood != "" {
			s.Phase = addonsv1.RolloutRollingBack
		}
		return 0
	}
	return d.advanceWaves()
}

// Rollback is a value of spec.rollout.onFailure.
const Rollback = "Rollback"

// advanceWaves advances through finished waves.
func (d *decision) advanceWaves() time.Duration {
	s := d.status
	s.Wave = max(1, min(s.Wave, int32(len(d.waves)))) // clusters may be gone, and waves with them
	for ; int(s.Wave) <= len(d.waves); s.Wave++ {
		wave := d.waves[s.Wave-1]
		if !all(wave, func(c Cluster) bool { return c.OnTarget && (c.Ready || c.Failed) }) {
			s.Phase = addonsv1.RolloutProgressing
			return 0
		}
		if left := d.soak(wave); left > 0 && int(s.Wave) < len(d.waves) {
			s.Phase = addonsv1.RolloutSoaking
			return left
		}
	}
	s.Wave, s.Phase = int32(len(d.waves)), addonsv1.RolloutComplete
	return 0
}

// soak returns how much longer a wave must stay ready.
func (d *decision) soak(wave []Cluster) time.Duration {
	if d.Spec.Soak == nil {
		return 0
	}
	var left time.Duration
	for _, c := range wave {
		if c.Ready {
			left = max(left, elapsed.Left(d.Spec.Soak.Duration, d.readySince(c), d.Now))
		}
	}
	return left
}

// readySince returns when a cluster became ready. One that became ready in the future, by a clock
// that was ahead, counts from when its wave was seen to soak.
func (d *decision) readySince(c Cluster) time.Time {
	was := d.Status
	switch {
	case !elapsed.Ahead(c.ReadySince, d.Now):
		return c.ReadySince
	case was != nil && was.Phase == addonsv1.RolloutSoaking && was.Wave == d.status.Wave && was.Since != nil && !elapsed.Ahead(was.Since.Time, d.Now):
		return was.Since.Time
	default:
		return d.Now
	}
}

// allowed returns the clusters that have the current revision, and as many more of the current
// waves as may change at a time.
func (d *decision) allowed() map[string]bool {
	switch d.status.Phase {
	case addonsv1.RolloutComplete:
		return names(d.Clusters)
	case addonsv1.RolloutPaused, addonsv1.RolloutRollingBack:
		return map[string]bool{}
	}
	out, changing := map[string]bool{}, 0
	var candidates []Cluster
	for _, wave := range d.waves[:min(int(d.status.Wave), len(d.waves))] {
		for _, c := range wave {
			switch {
			case !c.OnTarget:
				candidates = append(candidates, c)
			case !c.Ready && !c.Failed:
				changing++
				out[c.Name] = true
			default:
				out[c.Name] = true
			}
		}
	}
	limit := size(d.Spec.MaxUnavailable, len(d.Clusters), down)
	for _, c := range candidates {
		if d.Spec.MaxUnavailable != nil && changing >= limit {
			break
		}
		out[c.Name] = true
		changing++
	}
	return out
}

func names(clusters []Cluster) map[string]bool {
	out := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		out[c.Name] = true
	}
	return out
}

func all(clusters []Cluster, is func(Cluster) bool) bool {
	for _, c := range clusters {
		if !is(c) {
			return false
		}
	}
	return true
}
