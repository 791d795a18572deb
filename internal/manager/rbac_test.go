package manager_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/config"
)

func TestManagerPrivilegesAreMinimal(t *testing.T) {
	type attributes = authorizationv1.ResourceAttributes
	server, _ := ready(t)
	for _, tc := range []struct {
		name    string
		allowed bool
		attributes
	}{
		{name: "read secrets of clusters", allowed: true, attributes: attributes{Verb: "get", Resource: "secrets", Namespace: "any"}},
		{name: "make machines", allowed: true, attributes: attributes{Verb: "create", Group: "cluster.x-k8s.io", Resource: "machines", Namespace: "any"}},
		{name: "write its own definitions", allowed: true, attributes: attributes{Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "clusters.cluster.x-k8s.io"}},
		{name: "hold its lease", allowed: true, attributes: attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: config.Namespace, Name: "drover-manager"}},

		{name: "make clusters of Clusters", allowed: true, attributes: attributes{Verb: "create", Group: "cluster.x-k8s.io", Resource: "clusters", Namespace: "eksa-system"}},
		{name: "give users their kubeconfigs", allowed: true, attributes: attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Namespace: "any"}},
		{name: "make namespaces for packages", allowed: true, attributes: attributes{Verb: "create", Resource: "namespaces"}},
		{name: "remove them with their clusters", allowed: true, attributes: attributes{Verb: "delete", Resource: "namespaces", Name: "eksa-packages-any"}},
		{name: "change namespaces", attributes: attributes{Verb: "update", Resource: "namespaces", Name: "any"}},
		{name: "delete all namespaces at once", attributes: attributes{Verb: "deletecollection", Resource: "namespaces"}},

		{name: "read changes of specs in Git", allowed: true, attributes: attributes{Verb: "watch", Group: "drover.dev", Resource: "gitchanges", Namespace: "any"}},
		{name: "report on them", allowed: true, attributes: attributes{Verb: "patch", Group: "drover.dev", Resource: "gitchanges", Subresource: "status", Namespace: "any"}},
		{name: "read schedules of snapshots", allowed: true, attributes: attributes{Verb: "watch", Group: "drover.dev", Resource: "etcdsnapshotschedules", Namespace: "any"}},
		{name: "schedule snapshots itself", attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "etcdsnapshotschedules", Namespace: "any"}},
		{name: "remove finished ones", allowed: true, attributes: attributes{Verb: "delete", Group: "drover.dev", Resource: "gitchanges", Namespace: "any"}},
		{name: "ask Flux to fetch", allowed: true, attributes: attributes{Verb: "patch", Group: "source.toolkit.fluxcd.io", Resource: "gitrepositories", Namespace: "flux-system"}},
		{name: "tell Flux what to fetch", allowed: true, attributes: attributes{Verb: "create", Group: "source.toolkit.fluxcd.io", Resource: "gitrepositories", Namespace: "flux-system"}},
		{name: "tell Flux what to apply", allowed: true, attributes: attributes{Verb: "create", Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations", Namespace: "any"}},
		{name: "create accounts for Flux", allowed: true, attributes: attributes{Verb: "create", Resource: "serviceaccounts", Namespace: "any"}},
		{name: "make them creators", allowed: true, attributes: attributes{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "drover-cluster-creator"}},
		{name: "make them anything else", attributes: attributes{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "cluster-admin"}},
		{name: "tell Flux to use other sources", attributes: attributes{Verb: "create", Group: "source.toolkit.fluxcd.io", Resource: "ocirepositories", Namespace: "flux-system"}},
		{name: "see what Flux applied", allowed: true, attributes: attributes{Verb: "watch", Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations", Namespace: "any"}},
		{name: "change specs in Git for itself", attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "gitchanges", Namespace: "any"}},

		{name: "write foreign definitions", attributes: attributes{Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "widgets.example.com"}},
		{name: "create definitions", attributes: attributes{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}},
		{name: "delete its own definitions", attributes: attributes{Verb: "delete", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "clusters.cluster.x-k8s.io"}},
		{name: "write foreign webhook configurations", attributes: attributes{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Name: "others"}},
		{name: "list webhook configurations", attributes: attributes{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}},
		{name: "create webhook configurations", attributes: attributes{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}},
		{name: "create cluster roles", attributes: attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}},
		{name: "escalate cluster roles", attributes: attributes{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}},
		{name: "bind cluster roles", attributes: attributes{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}},
		{name: "escalate roles", attributes: attributes{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "any"}},
		{name: "bind roles", attributes: attributes{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "any"}},
		{name: "create Clusters", attributes: attributes{Verb: "create", Group: "anywhere.eks.amazonaws.com", Resource: "clusters", Namespace: "any"}},
		{name: "delete Clusters", attributes: attributes{Verb: "delete", Group: "anywhere.eks.amazonaws.com", Resource: "clusters", Namespace: "any"}},
		{name: "create charts", attributes: attributes{Verb: "create", Group: "addons.cluster.x-k8s.io", Resource: "helmchartproxies", Namespace: "any"}},
		{name: "create bindings of cluster roles", attributes: attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}},
		{name: "impersonate users", attributes: attributes{Verb: "impersonate", Resource: "users"}},
		{name: "impersonate service accounts", attributes: attributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: "kube-system"}},
		{name: "make tokens", attributes: attributes{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: config.Namespace}},
		{name: "create pods", attributes: attributes{Verb: "create", Resource: "pods", Namespace: "any"}},
		{name: "exec into pods", attributes: attributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "any"}},
		{name: "read pods", attributes: attributes{Verb: "get", Resource: "pods", Namespace: "any"}},
		{name: "create deployments", attributes: attributes{Verb: "create", Group: "apps", Resource: "deployments", Namespace: config.Namespace}},
		{name: "reach into nodes", attributes: attributes{Verb: "get", Resource: "nodes", Subresource: "proxy"}},
		{name: "read nodes", attributes: attributes{Verb: "list", Resource: "nodes"}},
		{name: "create clusters", attributes: attributes{Verb: "create", Group: "cluster.x-k8s.io", Resource: "clusters", Namespace: "any"}},
		{name: "delete clusters", attributes: attributes{Verb: "delete", Group: "cluster.x-k8s.io", Resource: "clusters", Namespace: "any"}},
		{name: "delete all secrets at once", attributes: attributes{Verb: "deletecollection", Resource: "secrets", Namespace: "any"}},
		{name: "use kinds of a provider that granted nothing", attributes: attributes{Verb: "get", Group: "infrastructure.cluster.x-k8s.io", Resource: "others", Namespace: "any"}},
		{name: "hold other leases", attributes: attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: config.Namespace, Name: "others"}},
		{name: "hold leases elsewhere", attributes: attributes{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system"}},
		{name: "approve certificates", attributes: attributes{Verb: "update", Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "approval"}},
		{name: "do anything", attributes: attributes{Verb: "*", Group: "*", Resource: "*"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + config.Namespace + ":" + config.ServiceAccount,
				Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + config.Namespace, "system:authenticated"},
				ResourceAttributes: &tc.attributes,
			}}
			answer, err := server.Clientset(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status.Allowed != tc.allowed {
				t.Errorf("allowed is %t, want %t: %s", answer.Status.Allowed, tc.allowed, answer.Status.Reason)
			}
		})
	}
}
