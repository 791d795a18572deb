package gitops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/model/document"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

// compareTimeout keeps Compare quick when a Git server does not answer.
const compareTimeout = 15 * time.Second

// Compare adds to each repository how its clusters differ from the newest commit. That takes the
// credentials of the repository: without permission to read them, it adds nothing. A problem of a
// repository is part of its status.
func (p *Plane) Compare(ctx context.Context, all []Status) error {
	for i := range all {
		s := &all[i]
		config := &anywherev1.FluxConfig{}
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.FluxConfig}, config)
		if err != nil {
			return fmt.Errorf("reading FluxConfig %q: %w", s.FluxConfig, err)
		}
		if err := p.compare(ctx, s, config); err != nil {
			s.CompareError = err.Error()
		}
	}
	return ctx.Err()
}

func (p *Plane) compare(ctx context.Context, s *Status, config *anywherev1.FluxConfig) error {
	secret, err := p.connected(ctx, config)
	if apierrors.IsForbidden(err) || err == nil && secret == nil {
		return nil
	}
	if err != nil {
		return err
	}
	remote, err := flux.FromSecret(secret, secret.Annotations[anywherev1.GitURLAnnotation], cmp.Or(config.Spec.Branch, spec.DefaultFluxBranch))
	if err != nil {
		return err
	}
	tip, err := fetchTip(ctx, remote)
	if err != nil || tip.Commit == "" {
		return err
	}
	report, err := gitops.Drift(tip.FS(), cmp.Or(config.Spec.ClusterConfigPath, "."), s.has, p.live(ctx, s.Namespace))
	if err != nil {
		return err
	}
	s.Compared = tip.Commit
	s.add(report)
	return nil
}

// fetchTip fetches the newest commit.
func fetchTip(ctx context.Context, remote git.Remote) (*git.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	repository, err := git.New(remote, git.Options{})
	if err != nil {
		return nil, err
	}
	return repository.Tip(ctx)
}

func (s *Status) has(cluster string) bool {
	return slices.ContainsFunc(s.Clusters, func(c ClusterStatus) bool { return c.Name == cluster })
}

// live returns how to read objects of specs. Files may leave out the namespace. Objects of another
// one are not those of this repository's clusters.
func (p *Plane) live(ctx context.Context, namespace string) gitops.Live {
	return func(id document.ID) (map[string]any, error) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(anywherev1.GroupVersion.WithKind(id.Kind))
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: cmp.Or(id.Namespace, namespace), Name: id.Name}, u)
		if apierrors.IsNotFound(err) {
			return nil, nil // A missing object is a difference.
		}
		return u.Object, err
	}
}

// add adds the differences to the clusters.
func (s *Status) add(report *gitops.Report) {
	for i := range s.Clusters {
		c := &s.Clusters[i]
		at := slices.IndexFunc(report.Clusters, func(change gitops.ClusterChange) bool { return change.Cluster == c.Name })
		if c.Missing = at < 0; !c.Missing {
			c.Differences, c.MoreDifferences = report.Clusters[at].Fields, report.Clusters[at].MoreFields
		}
	}
}
