package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxacl "github.com/fluxcd/pkg/apis/acl"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const (
	// probeName is the name of the Kustomization that finds out what Flux supports.
	probeName = "drover-probe"
	// retryProbe is when to ask again. Events of the probe come first.
	retryProbe = 30 * time.Second

	waitingReason = "WaitingForFlux"
)

// Support tells whether Flux applies ExternalArtifacts.
type Support interface {
	// Served reports whether the API server has the kind.
	Served() bool
	// Accepts reports whether kustomize-controller accepts the kind. It returns a *reconcile.Wait if
	// that isn't known yet.
	Accepts(ctx context.Context, repository client.ObjectKey) (bool, error)
	// Deny notes that kustomize-controller has rejected the kind.
	Deny()
}

// Probe is the Support of the Flux that runs, which may be somebody else's. The feature gate of
// kustomize-controller can't be seen, so that a Kustomization with a source that doesn't exist asks
// for it: the answer is that the source was not found, or that access is denied.
type Probe struct {
	client client.Client
	served bool

	mu     sync.Mutex
	answer *bool
}

// NewProbe returns a probe. The mapper knows which kinds the API server has.
func NewProbe(c client.Client, mapper apimeta.RESTMapper) (*Probe, error) {
	_, err := mapper.RESTMapping(externalArtifactKind().GroupKind(), externalArtifactKind().Version)
	if err != nil && !apimeta.IsNoMatchError(err) {
		return nil, fmt.Errorf("finding kind %s: %w", sourcev1.ExternalArtifactKind, err)
	}
	return &Probe{client: c, served: err == nil}, nil
}

// Served implements Support.
func (p *Probe) Served() bool { return p.served }

// Accepts implements Support. It asks once for each start of the manager.
func (p *Probe) Accepts(ctx context.Context, repository client.ObjectKey) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.served || p.answer != nil {
		return p.served && *p.answer, nil
	}
	k, err := p.ask(ctx, repository)
	if err != nil {
		return false, err
	}
	accepted, known := answerOf(k)
	if !known {
		return false, &reconcile.Wait{Reason: waitingReason, Message: "Waiting for kustomize-controller of Flux", After: retryProbe}
	}
	p.answer = &accepted
	return accepted, client.IgnoreNotFound(p.client.Delete(ctx, k, client.Preconditions{UID: &k.UID}))
}

// Deny implements Support.
func (p *Probe) Deny() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = new(bool)
}

// ask returns the probe, and creates it first if necessary.
func (p *Probe) ask(ctx context.Context, repository client.ObjectKey) (*kustomizev1.Kustomization, error) {
	want := probe(repository)
	k := &kustomizev1.Kustomization{}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(want), k)
	if apierrors.IsNotFound(err) {
		return want, Apply(ctx, p.client, want)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Kustomization %q: %w", client.ObjectKeyFromObject(want), err)
	}
	return k, nil
}

// probe returns a Kustomization that applies nothing, because its source doesn't exist.
func probe(repository client.ObjectKey) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: repository.Namespace, Name: probeName, Labels: map[string]string{ManagedByLabel: ManagedBy}, Annotations: sourceAnnotations(repository),
		},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: time.Hour}, DeletionPolicy: kustomizev1.DeletionPolicyOrphan, ServiceAccountName: config.FluxDefault,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.ExternalArtifactKind, Name: probeName},
		},
	}
	k.SetGroupVersionKind(kustomizationKind())
	return k
}

// answerOf returns what kustomize-controller says about an ExternalArtifact in the namespace of a
// Kustomization. Only the feature gate denies access to one.
func answerOf(k *kustomizev1.Kustomization) (accepted, known bool) {
	ready := apimeta.FindStatusCondition(k.Status.Conditions, fluxmeta.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionUnknown || !k.DeletionTimestamp.IsZero() {
		return false, false
	}
	return ready.Status == metav1.ConditionTrue || ready.Reason != fluxacl.AccessDeniedReason, true
}

// isDenied reports whether kustomize-controller has rejected the source of a Kustomization.
func isDenied(k *kustomizev1.Kustomization) bool {
	accepted, known := answerOf(k)
	return isExternal(k) && known && !accepted
}
