package e2e

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// stillFor is how long an idle management cluster is checked for writes.
const stillFor = time.Minute

// ownGroups are the API groups of Drover, of Cluster API and of Flux.
var ownGroups = []string{"cluster.x-k8s.io", "drover.dev", "eks.amazonaws.com", "toolkit.fluxcd.io"}

// checkIdle starts to check that a management cluster, given by its kubeconfig, is idle. The
// returned function fails the test if anything was written until then, or in the rest of a minute.
// The last writes of earlier operations may still arrive at first.
func (s *story) checkIdle(kubeconfig string) func() {
	s.t.Helper()
	before, began := s.versions(kubeconfig), time.Now()
	return func() {
		s.t.Helper()
		diff := ""
		for range 2 {
			rest := time.NewTimer(time.Until(began.Add(stillFor)))
			select {
			case <-rest.C:
			case <-s.t.Context().Done():
			}
			after := s.versions(kubeconfig)
			if diff = cmp.Diff(before, after); diff == "" {
				return
			}
			s.t.Logf("written within %s (-before +after):\n%s", time.Since(began).Round(time.Second), diff)
			before, began = after, time.Now()
		}
		s.t.Errorf("a quiet management cluster writes (-before +after):\n%s", diff)
	}
}

// versions returns the resource versions of all our objects on a management cluster.
func (s *story) versions(kubeconfig string) map[string]string {
	s.t.Helper()
	_, config := s.client(kubeconfig)
	found, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		s.t.Fatal(err)
	}
	all, err := metadata.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]string{}
	for _, list := range found {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !ours(group.Group, kind.Name) {
				continue
			}
			objects, err := all.Resource(group.WithResource(kind.Name)).List(s.t.Context(), metav1.ListOptions{})
			if err != nil {
				s.t.Fatal(err)
			}
			for _, o := range objects.Items {
				out[kind.Name+"."+group.Group+" "+o.Namespace+"/"+o.Name] = o.ResourceVersion
			}
		}
	}
	if len(out) < 20 {
		s.t.Fatalf("there are only %d objects", len(out))
	}
	return out
}

// ours reports whether objects of a kind are Drover's or Cluster API's. It includes all Secrets and
// ConfigMaps.
func ours(group, kind string) bool {
	return group == "" && (kind == "secrets" || kind == "configmaps") || slices.ContainsFunc(ownGroups, func(own string) bool {
		return group == own || strings.HasSuffix(group, "."+own)
	})
}
