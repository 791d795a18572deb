package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Component is a part of a cluster that has certificates.
type Component string

// The components, in the order in which they are renewed.
const (
	Etcd         Component = "etcd"
	ControlPlane Component = "control-plane"
)

// Components returns all components.
func Components() []Component { return []Component{Etcd, ControlPlane} }

// renewCommand is the command of plans.
const renewCommand = "renew certificates"

// annotation returns the annotation that requests new certificates.
func (c Component) annotation() string {
	if c == Etcd {
		return anywherev1.RenewEtcdAnnotation
	}
	return anywherev1.RenewControlPlaneAnnotation
}

// renewed returns since when all certificates were issued, as far as the manager has reported.
func (c Component) renewed(s *anywherev1.ClusterStatus) *metav1.Time {
	if c == Etcd {
		return s.CertificatesRenewed.Etcd
	}
	return s.CertificatesRenewed.ControlPlane
}

// kept is the checkpoint key of the request before this one, so that a resumed run makes no second
// one.
func (c Component) kept() string { return "renewal-before-" + string(c) }

func (o Options) renewal(cluster string, components []Component, phases []phase.Phase) *phase.Plan {
	words := []string{renewCommand}
	for _, c := range components {
		words = append(words, string(c))
	}
	return &phase.Plan{Command: renewCommand, Cluster: cluster, Phases: phases, Again: o.Again, Fingerprint: strings.Join(words, " ")}
}

// renewPhases returns the phases that renew components. All means those that the cluster has.
func renewPhases(components []Component, phaseOf func(action) func(context.Context, *phase.Progress) error) []phase.Phase {
	all := map[Component]phase.Phase{
		Etcd:         {Name: RenewEtcdCertificates, Summary: "Replace the machines of external etcd one at a time"},
		ControlPlane: {Name: RenewControlPlaneCerts, Summary: "Replace the control plane machines one at a time"},
	}
	var out []phase.Phase
	for _, c := range Components() {
		if len(components) > 0 && !slices.Contains(components, c) {
			continue
		}
		p := all[c]
		p.Run = phaseOf(func(w *Workload, ctx context.Context, progress *phase.Progress) error {
			return w.renew(ctx, progress, c)
		})
		p.Changes = []string{"replaces each machine of " + string(c) + " with a new one, which has new certificates"}
		out = append(out, p)
	}
	return out
}

// Renew plans new certificates for components of a workload cluster; none means all.
func (w *Workload) Renew(components []Component) (*phase.Plan, error) {
	phaseOf := func(run action) func(context.Context, *phase.Progress) error { return w.connected(run.of(w)) }
	setup := phase.Phase{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: phaseOf(setupRenew(components))}
	return w.renewal(w.Config.Cluster.Name, components, append([]phase.Phase{setup}, renewPhases(components, phaseOf)...)), nil
}

// Renew plans new certificates for components of a management cluster. Like an upgrade, it replaces
// machines of the cluster from a bootstrap plane.
func (m *Management) Renew(components []Component) (*phase.Plan, error) {
	phases := m.replacingMachines(setupRenew(components), renewPhases(components, m.fromBootstrap)...)
	return m.renewal(m.Config.Cluster.Name, components, phases), nil
}

// setupRenew returns the action that checks whether certificates can be renewed.
func setupRenew(components []Component) action {
	return func(w *Workload, ctx context.Context, p *phase.Progress) error {
		return preflight(ctx, p, w.checkVersions, func(ctx context.Context, p *phase.Progress) []error {
			return w.checkRenewable(ctx, p, components)
		})
	}
}

func (w *Workload) checkRenewable(ctx context.Context, p *phase.Progress, components []Component) []error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	if err != nil {
		return []error{err}
	}
	w.Config.Cluster.Namespace = live.Namespace
	switch {
	case !live.DeletionTimestamp.IsZero():
		return []error{fmt.Errorf("cluster %q is being deleted", live.Name)}
	case live.IsPaused() && !p.Resumed():
		return []error{fmt.Errorf("cluster %q is paused: find out why, then remove the annotation %s", live.Name, anywherev1.PausedAnnotation)}
	case slices.Contains(components, Etcd) && live.Spec.ExternalEtcdConfiguration == nil:
		return []error{fmt.Errorf("cluster %q has no external etcd: members on control plane machines get new certificates with --component %s", live.Name, ControlPlane)}
	}
	for _, info := range live.Status.ClusterCertificateInfo {
		p.Note("the certificates of %s expire in %s", info.Machine, count(info.ExpiresInDays, "day"))
	}
	return nil
}

// renew requests new certificates for a component, or joins a request that is under way, and
// follows it to its end.
func (w *Workload) renew(ctx context.Context, p *phase.Progress, of Component) error {
	live, err := w.live(ctx)
	if err != nil {
		return err
	}
	if of == Etcd && live.Spec.ExternalEtcdConfiguration == nil {
		return phase.Skip("the cluster has no external etcd")
	}
	since, err := w.requestRenewal(ctx, p, of)
	if err != nil {
		return err
	}
	limit := w.ControlPlane
	if of == Etcd {
		limit = w.Etcd
	}
	follow := w.follow(p, replacing)
	return follow.until(ctx, limit, func(c *anywherev1.Cluster) bool {
		at := of.renewed(&c.Status)
		return at != nil && !at.Before(&since) && follow.reached(ctx, c)
	})
}

// requestRenewal requests new certificates and returns the time to wait for. A request that is not
// complete is joined; so is one that an interrupted run has made since it recorded the last.
func (w *Workload) requestRenewal(ctx context.Context, p *phase.Progress, of Component) (metav1.Time, error) {
	var since metav1.Time
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := w.live(ctx)
		if err != nil {
			return err
		}
		before, current := "", live.Annotations[of.annotation()]
		kept, err := p.Kept(of.kept(), &before)
		if err != nil {
			return err
		}
		requested, err := time.Parse(time.RFC3339, current)
		if err == nil && (kept && current != before || !completed(live, of, requested)) {
			since = metav1.NewTime(requested)
			return nil
		}
		if err := p.Keep(of.kept(), current); err != nil {
			return err
		}
		// Objects are as old as the second in which they were created.
		since = metav1.NewTime(time.Now().UTC().Truncate(time.Second).Add(time.Second))
		patch := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
		metav1.SetMetaDataAnnotation(&live.ObjectMeta, of.annotation(), since.Format(time.RFC3339))
		return w.plane.Client.Patch(ctx, live, patch, client.FieldOwner(anywherev1.FieldManagerCLI))
	})
	if err != nil {
		return since, fmt.Errorf("requesting new certificates for cluster %q: %w", w.Config.Cluster.Name, err)
	}
	return since, nil
}

// completed reports whether a request is complete.
func completed(c *anywherev1.Cluster, of Component, since time.Time) bool {
	at := of.renewed(&c.Status)
	return at != nil && !at.Time.Before(since)
}
