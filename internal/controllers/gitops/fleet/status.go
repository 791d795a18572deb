package fleet

import (
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setPublished computes the status of a source from its artifact. It is ready as soon as it has
// one: what Flux makes of it is reported by the Kustomization.
func setPublished(is *sourcev1.ExternalArtifact, artifact *fluxmeta.Artifact) {
	is.Status.Artifact = artifact
	apimeta.SetStatusCondition(&is.Status.Conditions, metav1.Condition{
		Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: fluxmeta.SucceededReason,
		Message: "Drover publishes the files of the cluster", ObservedGeneration: is.Generation,
	})
}
