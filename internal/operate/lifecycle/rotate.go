package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

const (
	// rotateCommand is the command of plans. Its fingerprint is the same for every spec, because it
	// applies none.
	rotateCommand = "encryption rotate"
	// keptRotation is the checkpoint key of the request, so that a resumed run makes no second one.
	keptRotation = "encryption-rotation"
)

const summaryRotate = "Replace the encryption key, and the control plane machines twice"

// rotateChanges are lines of plans.
func rotateChanges() []string {
	return []string{"replaces each control plane machine twice", "encrypts every Secret with the new key", "removes the old key"}
}

func (o Options) rotation(cluster string, phases []phase.Phase) *phase.Plan {
	return &phase.Plan{Command: rotateCommand, Cluster: cluster, Phases: phases, Again: o.Again, Fingerprint: rotateCommand}
}

// Rotate plans the replacement of the key with which a workload cluster encrypts its Secrets.
func (w *Workload) Rotate() (*phase.Plan, error) {
	return w.rotation(w.Config.Cluster.Name, []phase.Phase{
		{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: w.connected(w.setupRotate)},
		{Name: RotateEncryptionKey, Summary: summaryRotate, Run: w.connected(w.rotate), Changes: rotateChanges()},
	}), nil
}

// Rotate plans the replacement of the key with which a management cluster encrypts its Secrets.
// Like an upgrade, it replaces the machines of the cluster from a bootstrap plane.
func (m *Management) Rotate() (*phase.Plan, error) {
	return m.rotation(m.Config.Cluster.Name, m.replacingMachines((*Workload).setupRotate, phase.Phase{
		Name: RotateEncryptionKey, Summary: summaryRotate, Run: m.fromBootstrap((*Workload).rotate), Changes: rotateChanges(),
	})), nil
}

// action is what a phase does to a cluster, wherever its objects are.
type action func(*Workload, context.Context, *phase.Progress) error

// of returns a phase that does it to a cluster.
func (a action) of(w *Workload) func(context.Context, *phase.Progress) error {
	return func(ctx context.Context, p *phase.Progress) error { return a(w, ctx, p) }
}

// replacingMachines returns the phases around those that replace machines of the cluster from a
// bootstrap plane without changing its spec.
func (m *Management) replacingMachines(setup action, replace ...phase.Phase) []phase.Phase {
	return slices.Concat([]phase.Phase{
		{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: m.fromHome(setup)},
		{Name: PauseEksAAndFluxReconcile, Summary: summaryPauseOthers, Run: m.pauseOthers, Changes: []string{pausesOthers}},
		{Name: CreateBootstrapCluster, Summary: summaryBootstrap, Run: m.startBootstrap, Changes: m.startsBootstrap()},
		{Name: InstallCAPI, Summary: summaryBootstrapReady, Run: m.startBootstrap},
		{Name: MoveManagementToBootstrap, Summary: summaryMoveToBootstrap, Run: m.moveToBootstrap, Changes: []string{movesToBootstrap}},
	}, replace, []phase.Phase{
		{Name: MoveManagementToWorkload, Summary: summaryMoveBack, Run: m.moveToItself, Changes: []string{upgradesDrover, movesBack}},
		{Name: UpdateClusterAndGitResources, Summary: "Wait for the cluster", Run: m.awaitItself},
		{Name: ResumeFluxReconcile, Summary: summaryResumeOthers, Run: m.resumeOthers, Changes: []string{resumesOthers}},
		{Name: DeleteBootstrap, Summary: summaryDeleteBootstrap, Run: m.deleteBootstrap, Changes: m.removesBootstrap()},
	})
}

// fromHome returns a phase that runs where the cluster's objects are. After an interruption that
// may be the bootstrap plane.
func (m *Management) fromHome(run action) func(context.Context, *phase.Progress) error {
	return func(ctx context.Context, p *phase.Progress) error {
		w, live, err := m.home(ctx, p)
		if err != nil {
			return err
		}
		if live == nil {
			return fmt.Errorf("cluster %q not found, neither on itself nor on a bootstrap plane", m.Config.Cluster.Name)
		}
		return run(w, ctx, p)
	}
}

// fromBootstrap returns a phase that runs on the bootstrap plane.
func (m *Management) fromBootstrap(run action) func(context.Context, *phase.Progress) error {
	return func(ctx context.Context, p *phase.Progress) error {
		w, err := m.prepareBootstrap(ctx, p)
		if err != nil {
			return err
		}
		return run(w, ctx, p)
	}
}

// awaitItself waits until the cluster, which manages itself again, is ready.
func (m *Management) awaitItself(ctx context.Context, p *phase.Progress) error {
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	if err := w.follow(p, waitingFor).untilReady(ctx, m.Limits); err != nil {
		return err
	}
	return m.unmark(ctx, w)
}

// setupRotate checks that the cluster has a key that can be rotated.
func (w *Workload) setupRotate(ctx context.Context, p *phase.Progress) error {
	return preflight(ctx, p, w.checkVersions, w.checkRotatable)
}

func (w *Workload) checkRotatable(ctx context.Context, p *phase.Progress) []error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	if err != nil {
		return []error{err}
	}
	w.Config.Cluster.Namespace = live.Namespace
	secret, err := w.encryptionKeys(ctx)
	stage := ""
	if err == nil {
		stage = secret.Annotations[anywherev1.EncryptionStageAnnotation]
	}
	switch {
	case apierrors.IsForbidden(err):
		return []error{fmt.Errorf("rotating the key of cluster %q: only an administrator may: %w", live.Name, err)}
	case apierrors.IsNotFound(err) && live.IsSelfManaged():
		return []error{fmt.Errorf("cluster %q has no encryption key yet: it gets one when its Kubernetes is upgraded", live.Name)}
	case apierrors.IsNotFound(err):
		return []error{fmt.Errorf("cluster %q has no encryption key: add etcdEncryption with a secretbox provider to its spec", live.Name)}
	case err != nil:
		return []error{fmt.Errorf("reading the encryption keys of cluster %q: %w", live.Name, err)}
	case live.UsesEncryptionPlugin():
		return []error{fmt.Errorf("cluster %q encrypts with a plugin: rotate the key of the plugin", live.Name)}
	case live.IsPaused() && !p.Resumed():
		return []error{fmt.Errorf("cluster %q is paused: find out why, then remove the annotation %s", live.Name, anywherev1.PausedAnnotation)}
	case stage != anywherev1.EncryptionSettled && secret.Annotations[anywherev1.EncryptionRotateAnnotation] == "":
		return []error{fmt.Errorf("cluster %q is still introducing its encryption key (stage %s): wait until it is ready", live.Name, stage)}
	}
	return nil
}

// encryptionKeys reads the metadata of the Secret with the cluster's keys. The command never reads
// the keys.
func (w *Workload) encryptionKeys(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := w.plane.Client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: anywherev1.EncryptionSecret(w.Config.Cluster.Name)}, out)
	return out, err
}

// rotate requests a rotation, or joins one that is under way, and follows it to its end.
func (w *Workload) rotate(ctx context.Context, p *phase.Progress) error {
	request, err := w.requestRotation(ctx, p)
	if err != nil {
		return err
	}
	follow := w.follow(p, replacing)
	return follow.until(ctx, 2*w.ControlPlane, func(c *anywherev1.Cluster) bool {
		secret, err := w.encryptionKeys(ctx)
		return err == nil && secret.Annotations[anywherev1.EncryptionRotationAnnotation] == request &&
			secret.Annotations[anywherev1.EncryptionStageAnnotation] == anywherev1.EncryptionSettled && follow.reached(ctx, c)
	})
}

// requestRotation requests a rotation and returns the request to wait for. If another command
// requested one in the meantime, it is that one.
func (w *Workload) requestRotation(ctx context.Context, p *phase.Progress) (string, error) {
	request := time.Now().UTC().Format(time.RFC3339Nano)
	if _, err := p.Kept(keptRotation, &request); err != nil {
		return "", err
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, err := w.encryptionKeys(ctx)
		if err != nil {
			return err
		}
		if other := pendingRotation(secret); other != "" {
			request = other
		}
		if err := p.Keep(keptRotation, request); err != nil {
			return err
		}
		return w.annotateRotation(ctx, secret, request)
	})
	if err != nil {
		return "", fmt.Errorf("requesting a new encryption key for cluster %q: %w", w.Config.Cluster.Name, err)
	}
	return request, nil
}

// pendingRotation returns the request of a rotation that has not ended, or "".
func pendingRotation(secret *metav1.PartialObjectMetadata) string {
	request := secret.Annotations[anywherev1.EncryptionRotateAnnotation]
	if request == secret.Annotations[anywherev1.EncryptionRotationAnnotation] && secret.Annotations[anywherev1.EncryptionStageAnnotation] == anywherev1.EncryptionSettled {
		return ""
	}
	return request
}

// annotateRotation writes a request, unless the Secret changed since it was read.
func (w *Workload) annotateRotation(ctx context.Context, secret *metav1.PartialObjectMetadata, request string) error {
	if secret.Annotations[anywherev1.EncryptionRotateAnnotation] == request {
		return nil
	}
	patch := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, anywherev1.EncryptionRotateAnnotation, request)
	return w.plane.Client.Patch(ctx, secret, patch, client.FieldOwner(anywherev1.FieldManagerCLI))
}
