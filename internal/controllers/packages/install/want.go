package install

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/values"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	// giveUpAfter bounds how long a cluster that does not answer holds up the end of a Package, and atOnce is for one that was given up.
	giveUpAfter = 30 * time.Minute
	atOnce      = time.Second
	// maxHistory is how many revisions are kept: what is there, and what to go back to.
	maxHistory = 2
)

// want works out what the HelmReleaseProxy should say.
func (c *Controller) want(ctx context.Context, s *scope) (bool, error) {
	text, err := c.values(s)
	if err != nil {
		s.unsourced = &problem{packagesv1.ConfigInvalidReason, bound(err.Error())}
		return false, nil
	}
	wanted := c.chart(s)
	wanted.Values = text
	wanted.Options = options(s.pack, s.controller)
	if err := c.access(ctx, s, &wanted); err != nil {
		return false, err
	}
	if known := c.place(ctx, s, &wanted); !known {
		return false, nil
	}
	s.wanted = &wanted
	return true, nil
}

func (c *Controller) values(s *scope) (string, error) {
	config, err := bundle.ParseConfig(s.pack.Spec.Config)
	if err != nil {
		return "", err
	}
	return values.Compose(config, cmp.Or(s.controller.Spec.DefaultImageRegistry, s.controller.Spec.Registry(), c.Registry))
}

// registry is what the bundle says, or the cluster's.
func (s *scope) registry() string {
	return cmp.Or(s.found.Package.Source.Registry, s.controller.Spec.Registry())
}

// chart is where the chart comes from and goes to. It is named by the digest in the bundle, so that what is installed is what was signed.
func (c *Controller) chart(s *scope) addonsv1.HelmReleaseProxySpec {
	source := s.found.Package.Source
	url, name := c.Places.ChartPlace(s.registry(), source.Repository)
	return addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: s.target.ClusterNamespace, Name: s.target.Cluster,
		},
		RepoURL: url, ChartName: name, Version: s.found.Version.Digest, ReleaseName: s.target.Release,
	}
}

// options make "installed" mean that workloads are ready.
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

// place finds out the namespace on the cluster. It says whether that is known: only a chart may know, and has to come first.
func (c *Controller) place(ctx context.Context, s *scope, wanted *addonsv1.HelmReleaseProxySpec) bool {
	known := cmp.Or(s.target.Namespace, s.pack.Spec.TargetNamespace)
	if known == "" {
		var p *problem
		if known, p = c.chartsNamespace(ctx, s, wanted); p != nil {
			s.stuck = p
			return false
		}
	}
	s.target.Namespace, wanted.ReleaseNamespace = known, known
	return true
}

// chartsNamespace is what the chart says.
func (c *Controller) chartsNamespace(ctx context.Context, s *scope, wanted *addonsv1.HelmReleaseProxySpec) (string, *problem) {
	draft := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: s.pack.Namespace, Name: s.pack.Name}, Spec: *wanted}
	open, err := tool.Input{Sources: c.Values}.Want(ctx, draft)
	if err != nil {
		return "", &problem{packagesv1.InstallFailedReason, bound(err.Error())}
	}
	said, after, err := c.namespaces.of(open.Package, s.key())
	s.after = after
	switch {
	case err != nil:
		return "", &problem{packagesv1.InstallFailedReason, bound(err.Error())}
	case said == nil:
		return "", &problem{packagesv1.InstallingReason, fmt.Sprintf("getting the chart of version %s", s.found.Version.Name)}
	default:
		return cmp.Or(*said, metav1.NamespaceDefault), nil
	}
}
