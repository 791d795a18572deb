package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/config"
)

// webhookInterval is how often the webhooks are tried. Nothing reports when a Service has a
// backend.
const webhookInterval = 100 * time.Millisecond

// Ready waits until the manager of a cluster runs in the installed version, and its webhooks
// answer. It calls progress, which may be nil, whenever what it waits for changes.
func Ready(ctx context.Context, to *rest.Config, progress func(waitingFor string)) error {
	c, err := newClient(to)
	if err != nil {
		return err
	}
	w := &waiter{client: c, progress: progress}
	if err := w.deployment(ctx, managerKey); err != nil {
		return fmt.Errorf("waiting for the manager: %w", err)
	}
	return w.webhooks(ctx)
}

// FluxReady waits until the Flux controllers that Drover installed run. Those of somebody else may
// have other names.
func FluxReady(ctx context.Context, to *rest.Config, progress func(waitingFor string)) error {
	c, err := newClient(to)
	if err != nil {
		return err
	}
	w := &waiter{client: c, progress: progress}
	for _, name := range []string{config.FluxSource, config.FluxKustomize} {
		key := client.ObjectKey{Namespace: config.FluxNamespace, Name: name}
		switch err := c.Get(ctx, key, &appsv1.Deployment{}); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading Deployment %q: %w", key, err)
		}
		if err := w.deployment(ctx, key); err != nil {
			return fmt.Errorf("waiting for %s: %w", name, err)
		}
	}
	return nil
}

// managerKey is the Deployment of the manager.
var managerKey = client.ObjectKey{Namespace: config.Namespace, Name: config.ServiceAccount}

type waiter struct {
	client   client.WithWatch
	progress func(string)
	last     string
}

func (w *waiter) report(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.progress != nil && text != w.last {
		w.progress(text)
	}
	w.last = text
}

// deployment waits until all Pods of a Deployment are ready.
func (w *waiter) deployment(ctx context.Context, key client.ObjectKey) error {
	for {
		events, err := w.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(key.Namespace),
			client.MatchingFields{metav1.ObjectNameField: key.Name})
		if err != nil {
			return err
		}
		for event := range events.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && w.done(ctx, d) {
				events.Stop()
				return nil
			}
		}
		if ctx.Err() != nil { // Otherwise the server ended the watch.
			return fmt.Errorf("%s: %w", w.last, ctx.Err())
		}
	}
}

func (w *waiter) done(ctx context.Context, d *appsv1.Deployment) bool {
	wanted, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted && s.Replicas == wanted {
		return true
	}
	w.report("%d of %d %s ready%s", min(s.AvailableReplicas, s.UpdatedReplicas), wanted, podsOf(d), w.podFailure(ctx, d))
	return false
}

// podsOf is what the Pods of a Deployment are to the user.
func podsOf(d *appsv1.Deployment) string {
	if client.ObjectKeyFromObject(d) == managerKey {
		return "managers"
	}
	return d.Name + "s"
}

// podFailure returns why a container does not run, or "".
func (w *waiter) podFailure(ctx context.Context, d *appsv1.Deployment) string {
	pods := &corev1.PodList{}
	if w.client.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Template.Labels)) != nil {
		return ""
	}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" {
				return fmt.Sprintf(", Pod %s: %s", p.Name, s.State.Waiting.Reason)
			}
		}
	}
	return ""
}

// webhooks waits until the webhooks answer, with requests that only they can admit. Nothing is
// stored.
func (w *waiter) webhooks(ctx context.Context) error {
	tick := time.NewTicker(webhookInterval)
	defer tick.Stop()
	for {
		probe := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: "drover-probe"}}
		err := w.client.Create(ctx, probe, client.DryRunAll)
		if !apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) {
			return nil // Any other answer comes from the webhooks.
		}
		w.report("waiting for the webhooks to answer")
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the manager's webhooks: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}
