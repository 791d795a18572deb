package change

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	later  = "main@sha1:76543210fedcba9876543210fedcba9876543210"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// summary returns the conditions as "Type=Status Reason: message".
func summary(change *droverv1.GitChange) []string {
	var all []string
	for _, c := range change.Status.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return all
}

func TestConditions(t *testing.T) {
	written := func(flux fluxFacts) facts {
		return facts{cluster: "dev", action: droverv1.GitWrite, committed: true, changed: true, commit: commit, committedAt: noon, observed: true, flux: flux}
	}
	removed := func(flux fluxFacts) facts {
		f := written(flux)
		f.action = droverv1.GitRemove
		return f
	}
	superseded := removed(fluxFacts{hasCluster: true, hasKustomization: true})
	superseded.superseded = true
	unchanged := written(fluxFacts{})
	unchanged.changed, unchanged.observed = false, false
	const notCommitted, committed = "Unknown WaitingForFlux: The change is not committed yet", "True Committed: Committed 0123456789ab"
	for name, test := range map[string]struct {
		facts                     facts
		committed, applied, ready string
		finished                  bool
	}{
		"it is not its turn": {facts{reason: droverv1.GitQueuedReason, message: "Waiting"}, "Unknown Queued: Waiting", notCommitted, "Unknown Queued: Waiting", false},
		"the server is down": {facts{reason: droverv1.GitUnavailableReason, message: "Down"}, "False GitUnavailable: Down", notCommitted, "False GitUnavailable: Down", false},
		"access is denied":   {facts{reason: droverv1.GitDeniedReason, message: "No"}, "False Denied: No", notCommitted, "False Denied: No", false},
		"the files are bad":  {facts{reason: droverv1.GitInvalidReason, message: "Bad"}, "False Invalid: Bad", notCommitted, "False Invalid: Bad", true},
		"nothing is known of Flux": {
			unchanged, "True Unchanged: The files have the requested content",
			"Unknown WaitingForFlux: Waiting for Flux", "Unknown WaitingForFlux: Waiting for Flux", false,
		},
		"Flux has not fetched it": {
			written(fluxFacts{fetched: later}), committed,
			"Unknown WaitingForFlux: Waiting for Flux to fetch 0123456789ab", "Unknown WaitingForFlux: Waiting for Flux to fetch 0123456789ab", false,
		},
		"Flux can't fetch": {
			written(fluxFacts{fetchProblem: "no route"}), committed,
			"Unknown WaitingForFlux: Waiting for Flux to fetch the repository: no route", "Unknown WaitingForFlux: Waiting for Flux to fetch the repository: no route", false,
		},
		"Flux has fetched it": {
			written(fluxFacts{fetched: "main@sha1:" + commit, hasKustomization: true, applied: later}), committed,
			"Unknown WaitingForFlux: Waiting for Flux to apply main@sha1:" + commit, "Unknown WaitingForFlux: Waiting for Flux to apply main@sha1:" + commit, false,
		},
		"Flux has applied it": {
			written(fluxFacts{fetched: later, hasKustomization: true, applied: "main@sha1:" + commit}), committed,
			"True Applied: Flux applied main@sha1:" + commit, "True Applied: Flux applied main@sha1:" + commit, true,
		},
		"Flux has applied a later commit": {
			written(fluxFacts{fetched: later, handled: noon.Add(time.Second), hasKustomization: true, applied: later}), committed,
			"True Applied: Flux applied " + later, "True Applied: Flux applied " + later, true,
		},
		"Flux has applied what it fetched in the second of the push": {
			written(fluxFacts{fetched: later, handled: noon.Add(time.Second - 1), hasKustomization: true, applied: later}), committed,
			"Unknown WaitingForFlux: Waiting for Flux to fetch 0123456789ab", "Unknown WaitingForFlux: Waiting for Flux to fetch 0123456789ab", false,
		},
		"Flux can't apply it": {
			written(fluxFacts{fetched: "main@sha1:" + commit, hasKustomization: true, applied: later, attempted: "main@sha1:" + commit, applyProblem: "rejected"}), committed,
			"False ApplyFailed: Flux can't apply the files: rejected", "False ApplyFailed: Flux can't apply the files: rejected", false,
		},
		"Flux can't apply what was there before": {
			written(fluxFacts{fetched: "main@sha1:" + commit, hasKustomization: true, attempted: later, applyProblem: "rejected"}), committed,
			"Unknown WaitingForFlux: Waiting for Flux to apply main@sha1:" + commit, "Unknown WaitingForFlux: Waiting for Flux to apply main@sha1:" + commit, false,
		},
		"the cluster still exists": {
			removed(fluxFacts{hasCluster: true}), committed,
			`Unknown WaitingForFlux: Waiting for the deletion of cluster "dev"; a ready cluster is deleted after drover gitops confirm`,
			`Unknown WaitingForFlux: Waiting for the deletion of cluster "dev"; a ready cluster is deleted after drover gitops confirm`, false,
		},
		"the Kustomization still exists": {
			removed(fluxFacts{hasKustomization: true}), committed,
			`Unknown WaitingForFlux: Waiting for Flux to forget cluster "dev"`, `Unknown WaitingForFlux: Waiting for Flux to forget cluster "dev"`, false,
		},
		"the cluster is gone": {removed(fluxFacts{}), committed, `True Applied: Cluster "dev" is deleted`, `True Applied: Cluster "dev" is deleted`, true},
		"the cluster is written again": {
			superseded, committed,
			`False Superseded: A later change has written cluster "dev" again`, `False Superseded: A later change has written cluster "dev" again`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			report(change, test.facts, noon)
			want := []string{"Committed=" + test.committed, "Applied=" + test.applied, "Ready=" + test.ready}
			if diff := cmp.Diff(want, summary(change)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if progress.IsFinished(change) != test.finished || change.Status.Commit != test.facts.commit || change.Status.ObservedGeneration != 3 {
				t.Errorf("status %+v", change.Status)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	change := &droverv1.GitChange{}
	long := strings.Repeat("x", 100_000)
	f := facts{committed: true, commit: commit, observed: true, flux: fluxFacts{attempted: commit, applyProblem: long}}
	report(change, f, noon)
	report(change, facts{reason: droverv1.GitDeniedReason, message: long}, noon)
	for _, c := range change.Status.Conditions {
		if len(c.Message) > text.MaxMessage {
			t.Errorf("message of %s has %d bytes", c.Type, len(c.Message))
		}
	}
}

func TestAFinishedChangeIsKeptFromTheMomentItFinished(t *testing.T) {
	change := &droverv1.GitChange{}
	report(change, facts{reason: droverv1.GitDeniedReason, message: "No"}, noon)
	report(change, facts{reason: droverv1.GitInvalidReason, message: "Bad"}, noon.Add(2*time.Hour))
	if got := finishedAt(change); !got.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("finished at %s", got)
	}
	if got := meta.FindStatusCondition(change.Status.Conditions, droverv1.GitCommitted).LastTransitionTime; !got.Time.Equal(noon) {
		t.Errorf("not committed since %s", got)
	}
}

func TestAFetchIsRequestedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		facts facts
		want  bool
	}{
		"nothing was requested":       {facts{commit: commit, committedAt: noon}, true},
		"requested before the push":   {facts{commit: commit, committedAt: noon, flux: fluxFacts{requested: noon.Add(999 * time.Millisecond)}}, true},
		"requested after the push":    {facts{commit: commit, committedAt: noon, flux: fluxFacts{requested: noon.Add(time.Second)}}, false},
		"fetched without a request":   {facts{commit: commit, committedAt: noon, flux: fluxFacts{fetched: "main@sha1:" + commit}}, false},
		"there is nothing to fetch":   {facts{committedAt: noon}, false},
		"an older commit was fetched": {facts{commit: commit, committedAt: noon, flux: fluxFacts{fetched: later}}, true},
	} {
		if got := test.facts.needsFetch(); got != test.want {
			t.Errorf("%s: needsFetch() = %t", name, got)
		}
	}
}
