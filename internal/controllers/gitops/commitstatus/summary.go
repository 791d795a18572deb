package commitstatus

import (
	"cmp"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/git/forge"
)

// shown is how many namespaces a description names.
const shown = 2

// isConnected reports whether an administrator has opened the repository to a FluxConfig.
func isConnected(c *anywherev1.FluxConfig) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.RepositoryConnected)
}

// summarize returns the state of a revision and what to say about it: failure if somebody has to
// act in any namespace, else pending until all namespaces have it. Pending says nothing about
// progress, because each change of a description is a request to the forge.
func summarize(all []anywherev1.FluxConfig, revision string) forge.Status {
	all = slices.SortedFunc(slices.Values(all), func(a, b anywherev1.FluxConfig) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var failures []string
	pending := false
	for i := range all {
		applied := apimeta.FindStatusCondition(all[i].Status.Conditions, anywherev1.ClustersApplied)
		switch {
		case all[i].Status.Revision != revision || applied == nil || applied.Status == metav1.ConditionUnknown:
			pending = true
		case applied.Status == metav1.ConditionFalse:
			failures = append(failures, fmt.Sprintf("%s: %s", all[i].Namespace, applied.Message))
		}
	}
	switch {
	case len(failures) == 1:
		return forge.Status{State: forge.Failure, Description: failures[0]}
	case len(failures) > 1:
		return forge.Status{State: forge.Failure, Description: fmt.Sprintf("%d namespaces: %s", len(failures), text.Clauses(failures, shown))}
	case pending:
		return forge.Status{State: forge.Pending, Description: "Drover has seen the commit and applies it"}
	}
	return forge.Status{State: forge.Success, Description: "Applied to all clusters"}
}
