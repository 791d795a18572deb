package fleettest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// Revisions of the repositories, the newest first.
const (
	newest  = "main@sha1:4f0c2d91ab77e35c6b8d0e1f2a3948576c6b5a49"
	earlier = "main@sha1:9be1d70c55aa3f26e8c4b7d2910f6e3a8b7c6d5e"
)

// rejects is what Flux says about the files of a cluster with an unbooted worker.
const rejects = "clusters/mgmt/workload-clusters/%s/eksa-cluster.yaml: spec.kubernetesVersion: 1.99 is not available"

// inGit reports whether the spec of the cluster with a number is in Git.
func inGit(i int) bool { return i%4 == 0 }

// git returns a repository per namespace with what Flux has applied. Flux rejects the files of
// clusters with an unbooted worker, and every sixth cluster waits for a commit.
func (f Fleet) git(clusters int) []client.Object {
	configs := map[string]*anywherev1.FluxConfig{}
	var out []client.Object
	for i := 0; i < clusters; i += 4 {
		c := &cluster{fleet: f, number: i, name: Name(i), state: f.StateOf(i)}
		config := configs[Namespace(i)]
		if config == nil {
			config = c.repository()
			configs[Namespace(i)] = config
			out = append(out, config)
		}
		if c.state == Unbooted {
			message := "Flux has not applied the newest commit to cluster " + c.name
			config.Status.Conditions[2] = c.unmet(anywherev1.ClustersApplied, anywherev1.ClustersRejectedReason, message)
		}
		out = append(out, c.applied())
		if i%24 == 8 {
			out = append(out, c.change())
		}
	}
	return out
}

func (c *cluster) repository() *anywherev1.FluxConfig {
	namespace := Namespace(c.number)
	out := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet", UID: types.UID(namespace + "/fleet"), CreationTimestamp: c.at(2000 * time.Hour)}}
	out.Spec.Git = &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/" + namespace + "/fleet.git"}
	out.Status.Revision = newest
	out.Status.Conditions = []metav1.Condition{c.met(anywherev1.RepositoryConnected), c.met(anywherev1.RepositoryFetched), c.met(anywherev1.ClustersApplied)}
	return out
}

// applied returns the Kustomization of a cluster.
func (c *cluster) applied() client.Object {
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied revision"}
	revision := newest
	if c.state == Unbooted {
		ready = map[string]any{"type": "Ready", "status": "False", "reason": "ReconciliationFailed", "message": fmt.Sprintf(rejects, c.name)}
		revision = earlier
	}
	ready["lastTransitionTime"] = c.at(time.Hour).Format(time.RFC3339)
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"status": map[string]any{"lastAppliedRevision": revision, "conditions": []any{ready}},
	}}
	out.SetNamespace(Namespace(c.number))
	out.SetName("fleet-" + c.name)
	out.SetUID(types.UID("kustomization/" + c.name))
	out.SetLabels(map[string]string{anywherev1.GitClusterLabel: c.name})
	return out
}

// change is a commit that Flux has not applied yet.
func (c *cluster) change() *droverv1.GitChange {
	out := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace(c.number), Name: c.name + "-change", UID: types.UID("change/" + c.name), CreationTimestamp: c.at(20 * time.Second),
	}}
	out.Spec = droverv1.GitChangeSpec{
		Cluster: c.name, Action: droverv1.GitWrite, FluxConfig: "fleet", Command: "drover upgrade cluster -f " + c.name + ".yaml",
		RequestedBy: "system:serviceaccount:" + Namespace(c.number) + ":creator",
	}
	out.Status.Commit = "4f0c2d91ab77e35c6b8d0e1f2a3948576c6b5a49"
	out.Status.Conditions = []metav1.Condition{
		{Type: droverv1.GitCommitted, Status: metav1.ConditionTrue, Reason: droverv1.GitCommittedReason, LastTransitionTime: c.at(15 * time.Second)},
		{Type: droverv1.GitApplied, Status: metav1.ConditionUnknown, Reason: droverv1.GitWaitingReason, Message: "Waiting for Flux to apply commit 4f0c2d9", LastTransitionTime: c.at(15 * time.Second)},
	}
	return out
}
