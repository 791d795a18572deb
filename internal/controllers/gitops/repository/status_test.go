package repository

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
)

const (
	before = "main@sha1:1"
	newest = "main@sha1:2"
)

// fetchedBy returns a GitRepository with a condition and an artifact.
func fetchedBy(status metav1.ConditionStatus, message string) *sourcev1.GitRepository {
	r := &sourcev1.GitRepository{}
	r.Status.Conditions = []metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: status, Message: message}}
	r.Status.Artifact = &fluxmeta.Artifact{Revision: newest}
	return r
}

// kustomization returns the Kustomization of a cluster that has a revision, and a message if it
// failed.
func kustomization(name, revision, failure string) kustomizev1.Kustomization {
	cluster, _, _ := strings.Cut(name, ".")
	k := kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{anywherev1.GitClusterLabel: cluster}}}
	k.Status.LastAppliedRevision = revision
	if failure != "" {
		k.Status.Conditions = []metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse, Reason: "BuildFailed", Message: failure}}
	}
	return k
}

func TestConditions(t *testing.T) {
	suspended, outdated, old := fetchedBy(metav1.ConditionTrue, ""), fetchedBy(metav1.ConditionTrue, ""), kustomization("a", before, "failed before")
	suspended.Spec.Suspend, outdated.Generation, old.Generation = true, 2, 2
	waits := kustomization("a.addons", newest, "dependency")
	waits.Status.Conditions[0].Reason = fluxmeta.DependencyNotReadyReason
	for name, tt := range map[string]struct {
		facts facts
		// want has connected, fetched, applied and Ready, as status and reason.
		want [4]string
		// message is part of that of Ready.
		message string
	}{
		"not connected": {
			facts{denied: "Secret not found", repository: fetchedBy(metav1.ConditionTrue, "")},
			[4]string{"False NotConnected", "Unknown NotConnected", "Unknown NotConnected", "False NotConnected"},
			"Secret not found",
		},
		"new": {
			facts{}, [4]string{"True Connected", "Unknown Fetching", "Unknown Applying", "Unknown Fetching"}, "Waiting for Flux to fetch the branch",
		},
		"a changed GitRepository": {
			facts{repository: outdated, report: &fleet.Report{Revision: newest}}, [4]string{"True Connected", "Unknown Fetching", "True Applied", "Unknown Fetching"}, "",
		},
		"a suspended GitRepository": {
			facts{repository: suspended, report: &fleet.Report{Revision: newest}},
			[4]string{"True Connected", "False FetchFailed", "True Applied", "False FetchFailed"},
			"suspended",
		},
		"a server that doesn't answer": {
			facts{repository: fetchedBy(metav1.ConditionFalse, "no route to host"), report: &fleet.Report{Revision: newest}},
			[4]string{"True Connected", "False FetchFailed", "True Applied", "False FetchFailed"},
			"No route to host",
		},
		"a commit that Drover hasn't read": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: before}},
			[4]string{"True Connected", "True Fetched", "Unknown Applying", "Unknown Applying"},
			"Waiting for Drover to read",
		},
		"a commit that Flux is applying": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest}, kustomizations: []kustomizev1.Kustomization{
				kustomization("b", newest, ""), kustomization("a", before, ""),
			}},
			[4]string{"True Connected", "True Fetched", "Unknown Applying", "Unknown Applying"},
			"Waiting for Flux to apply main@sha1:2 to a",
		},
		"a failure of an older spec": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest}, kustomizations: []kustomizev1.Kustomization{old}},
			[4]string{"True Connected", "True Fetched", "Unknown Applying", "Unknown Applying"},
			"",
		},
		"add-ons that wait for their cluster": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest}, kustomizations: []kustomizev1.Kustomization{kustomization("a", before, ""), waits}},
			[4]string{"True Connected", "True Fetched", "Unknown Applying", "Unknown Applying"},
			"",
		},
		"a cluster that is rejected": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest, Unconfirmed: []string{"z"}}, kustomizations: []kustomizev1.Kustomization{
				kustomization("a", newest, ""), kustomization("b", before, "denied\nby webhook\n"),
			}},
			[4]string{"True Connected", "True Fetched", "False Rejected", "False Rejected"},
			`Not applied: cluster "b": denied by webhook`,
		},
		"a spec that is broken": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest, Problems: []string{"clusters/a.yaml:3: oops"}}},
			[4]string{"True Connected", "True Fetched", "False Rejected", "False Rejected"},
			"Not applied: clusters/a.yaml:3: oops",
		},
		"a removal that nobody confirmed": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest, Unconfirmed: []string{"a"}}, kustomizations: []kustomizev1.Kustomization{
				kustomization("a", before, "path not found"),
			}},
			[4]string{"True Connected", "True Fetched", "False RemovalUnconfirmed", "False RemovalUnconfirmed"},
			"removed: a; run `drover gitops confirm NAME`",
		},
		"everything applied": {
			facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest}, kustomizations: []kustomizev1.Kustomization{
				kustomization("a", newest, ""), kustomization("a.addons", newest, ""), kustomization("b", newest, ""),
			}},
			[4]string{"True Connected", "True Fetched", "True Applied", "True Ready"},
			"Flux has applied main@sha1:2 to all clusters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			setStatus(c, &tt.facts)
			var got [4]string
			for i, one := range c.Status.Conditions {
				got[i] = fmt.Sprintf("%s %s", one.Status, one.Reason)
				if one.ObservedGeneration != 7 || one.Message == "" || len(one.Message) > text.MaxMessage {
					t.Errorf("condition %+v", one)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if last := c.Status.Conditions[3]; last.Type != anywherev1.Ready || !strings.Contains(last.Message, tt.message) {
				t.Errorf("%s says %q, want %q", last.Type, last.Message, tt.message)
			}
		})
	}
}

func TestConditionDoesNotAlternateWhileFluxTriesAgain(t *testing.T) {
	f := facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest}}
	f.kustomizations = []kustomizev1.Kustomization{kustomization("a", before, "denied")}
	f.kustomizations[0].Status.LastAttemptedRevision = newest
	c := &anywherev1.FluxConfig{}
	setStatus(c, &f)
	rejected := c.DeepCopy()
	f.kustomizations[0].Status.Conditions = nil
	setStatus(c, &f)
	if diff := cmp.Diff(rejected, c); diff != "" {
		t.Errorf("another attempt changes the status (-before +after):\n%s", diff)
	}
	f.kustomizations[0].Status.LastAttemptedRevision = before
	setStatus(c, &f)
	if got := c.Status.Conditions[2].Reason; got != anywherev1.ClustersApplyingReason {
		t.Errorf("reason %s for a commit that Flux has not tried yet", got)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	f := facts{repository: fetchedBy(metav1.ConditionTrue, ""), report: &fleet.Report{Revision: newest}}
	for i := range 1000 {
		f.kustomizations = append(f.kustomizations, kustomization(fmt.Sprintf("c%d", i), before, strings.Repeat("x", 1000)))
	}
	c := &anywherev1.FluxConfig{}
	setStatus(c, &f)
	for _, one := range c.Status.Conditions {
		if len(one.Message) > text.MaxMessage {
			t.Errorf("%s has a message of %d bytes", one.Type, len(one.Message))
		}
	}
}
