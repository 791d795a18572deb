package install

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	// giveUpAfter is how long an unreachable cluster delays the deletion of a Package, and atOnce
	// is used if the user abandons it.
	giveUpAfter = 30 * time.Minute
	atOnce      = time.Second
	// maxHistory is the number of revisions to keep: the current one and one to roll back to.
	maxHistory = 2
)

// renderRelease computes the wanted spec of the HelmReleaseProxy, except for its namespace.
func (c *Controller) renderRelease(ctx context.Context, s *scope) error {
	wanted := c.chart(s)
	if wanted.Values, s.configErr = c.values(s); s.configErr != nil {
		return reconcile.Stop
	}
	wanted.Options = options(s.pack, s.controller)
	if err := c.access(ctx, s, &wanted); err != nil {
		return err
	}
	s.wanted = &wanted
	return nil
}

func (c *Controller) values(s *scope) (string, error) {
	config, err := bundle.ParseConfig(s.pack.Spec.Config)
	if err != nil {
		return "", err
	}
	return composeValues(config, cmp.Or(s.controller.Spec.DefaultImageRegistry, s.controller.Spec.Registry(), c.Registry))
}

// registry returns the registry of the package in the bundle, or that of the cluster.
func (s *scope) registry() string {
	return cmp.Or(s.found.Package.Source.Registry, s.controller.Spec.Registry())
}

// chart returns a spec with the location of the chart and its target. The version is the digest in
// the bundle, so that the signed chart is installed.
func (c *Controller) chart(s *scope) addonsv1.HelmReleaseProxySpec {
	source := s.found.Package.Source
	url, name := c.Places.ChartPlace(s.registry(), source.Repository)
	return addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: s.target.ClusterNamespace, Name: s.target.Cluster,
		},
		RepoURL: url, ChartName: name, Version: s.found.Version.Digest, ReleaseName: s.target.Release,
		ServiceAccountName: s.pack.Spec.ServiceAccountName,
	}
}

// options waits for workloads to become ready.
func options(p *packagesv1.Package, c *packagesv1.PackageBundleController) addonsv1.HelmOptions {
	timeout := metav1.Duration{Duration: addonsv1.DefaultTimeout}
	if t := p.Spec.Timeout; t != nil && t.Duration > 0 {
		timeout = *t
	}
	return addonsv1.HelmOptions{
		Wait:      true,
		Atomic:    p.Spec.RollbackOnFailure,
		Timeout:   &timeout,
		Install:   addonsv1.HelmInstallOptions{CreateNamespace: ptr.To(c.Spec.CreateNamespace)},
		Upgrade:   addonsv1.HelmUpgradeOptions{MaxHistory: ptr.To(maxHistory)},
		Uninstall: &addonsv1.HelmUninstallOptions{GiveUpAfter: &metav1.Duration{Duration: giveUpAfter}},
	}
}

// findNamespace determines the namespace on the cluster. A release keeps its namespace; a new one
// gets that of the Package, or the default namespace of the chart.
func (c *Controller) findNamespace(ctx context.Context, s *scope) error {
	name := cmp.Or(s.target.Namespace, s.pack.Spec.TargetNamespace)
	if name == "" {
		inChart, err := c.chartsNamespace(ctx, s)
		s.namespaceErr, s.namespaceUnknown = err, inChart == nil
		if s.namespaceUnknown {
			return reconcile.Stop
		}
		name = cmp.Or(*inChart, metav1.NamespaceDefault)
	}
	s.target.Namespace, s.wanted.ReleaseNamespace = name, name
	return nil
}

// chartsNamespace returns the default namespace of the chart, which may be empty. It returns nil
// until the chart is downloaded.
func (c *Controller) chartsNamespace(ctx context.Context, s *scope) (*string, error) {
	draft := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: s.pack.Namespace, Name: s.pack.Name}, Spec: *s.wanted}
	input, err := tool.Input{Sources: c.Values}.Want(ctx, draft)
	if err != nil {
		return nil, err
	}
	inChart, after, err := c.namespaces.of(input.Package, s.Key())
	s.after = after
	return inChart, err
}
