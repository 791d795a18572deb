package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// The names and their order are recorded in checkpoints.
func TestPhasesOfARotation(t *testing.T) {
	want := map[string][]string{
		"workload": {"SetupAndValidate", "RotateEncryptionKey"},
		"management": {
			"SetupAndValidate", "PauseEksAAndFluxReconcile", "CreateBootstrapCluster", "InstallCAPI", "MoveManagementToBootstrap", "RotateEncryptionKey",
			"MoveManagementToWorkload", "UpdateClusterAndGitResources", "ResumeFluxReconcile", "DeleteBootstrap",
		},
	}
	for kind, p := range planned(t) {
		plan, err := p.Rotate()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[kind], plan.Names()); diff != "" || plan.Command != "encryption rotate" || plan.Fingerprint == "" || plan.Again == "" {
			t.Errorf("%s: plan %q (-want +got):\n%s", kind, plan.Command, diff)
		}
	}
}

// encrypted creates a ready workload cluster with keys in a stage.
func (w *world) encrypted(name string, annotations map[string]string) (*Workload, *corev1.Secret) {
	w.Helper()
	w.cluster(name, false)
	c := &anywherev1.Cluster{}
	key := client.ObjectKey{Namespace: w.namespace, Name: name}
	w.must(w.client.Get(w.Context(), key, c))
	apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: anywherev1.Ready, Status: metav1.ConditionTrue, Reason: "Ready"})
	c.Status.ObservedGeneration, c.Status.ReconciledGeneration = c.Generation, c.Generation
	w.must(w.client.Status().Update(w.Context(), c))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: anywherev1.SystemNamespace}}
	w.must(client.IgnoreAlreadyExists(w.client.Create(w.Context(), namespace)))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.EncryptionSecret(name), Annotations: annotations}}
	w.must(w.client.Create(w.Context(), secret))
	w.Cleanup(func() { _ = w.client.Delete(context.Background(), secret) })
	connected, err := inspect.Connect(w.config)
	w.must(err)
	return &Workload{
		Options: Options{Dir: w.dir, SkipSkew: true, Limits: Limits{ControlPlane: time.Minute}}, REST: w.config, plane: connected,
		Config: &spec.Config{Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}},
	}, secret
}

// finishRotation plays the controllers.
func (w *world) finishRotation(secret *corev1.Secret) string {
	w.Helper()
	w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(secret), secret))
	request := secret.Annotations[anywherev1.EncryptionRotateAnnotation]
	secret.Annotations[anywherev1.EncryptionRotationAnnotation] = request
	secret.Annotations[anywherev1.EncryptionStageAnnotation] = anywherev1.EncryptionSettled
	w.must(w.client.Update(w.Context(), secret))
	return request
}

func TestRotationIsRequestedOnceAlthoughKilled(t *testing.T) {
	w := newWorld(t)
	one, secret := w.encrypted("one", map[string]string{anywherev1.EncryptionStageAnnotation: anywherev1.EncryptionSettled})
	killed := errors.New("killed")
	err := w.run(one.setupRotate, func(ctx context.Context, p *phase.Progress) error {
		if _, err := one.requestRotation(ctx, p); err != nil {
			return err
		}
		return killed
	})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	request := w.finishRotation(secret)
	w.must(w.run(one.setupRotate, one.rotate))
	if again := w.finishRotation(secret); request == "" || again != request {
		t.Errorf("requests %q and %q", request, again)
	}
}

func TestRotationJoinsOneUnderWay(t *testing.T) {
	w := newWorld(t)
	one, secret := w.encrypted("one", map[string]string{
		anywherev1.EncryptionStageAnnotation: "Switching", anywherev1.EncryptionRotateAnnotation: "earlier", anywherev1.EncryptionRotationAnnotation: "earlier",
	})
	w.must(w.run(func(ctx context.Context, p *phase.Progress) error {
		request, err := one.requestRotation(ctx, p)
		if request != "earlier" {
			t.Errorf("request %q", request)
		}
		return err
	}))
	if got := w.finishRotation(secret); got != "earlier" {
		t.Errorf("request %q", got)
	}
}

// overtaken lets another command write before the first patch.
type overtaken struct {
	client.WithWatch

	by func()
}

func (o *overtaken) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if o.by != nil {
		by := o.by
		o.by = nil
		by()
	}
	return o.WithWatch.Patch(ctx, object, patch, options...)
}

// A request that overwrote another would start a second rotation, and leave the command that made
// the first one waiting.
func TestConcurrentRotationsAreOne(t *testing.T) {
	w := newWorld(t)
	one, secret := w.encrypted("one", map[string]string{anywherev1.EncryptionStageAnnotation: anywherev1.EncryptionSettled})
	one.plane.Client = &overtaken{WithWatch: one.plane.Client, by: func() {
		secret.Annotations[anywherev1.EncryptionRotateAnnotation] = "other"
		w.must(w.client.Update(t.Context(), secret))
	}}
	killed := errors.New("killed")
	err := w.run(one.setupRotate, func(ctx context.Context, p *phase.Progress) error {
		request, err := one.requestRotation(ctx, p)
		if err != nil || request != "other" {
			t.Errorf("request %q, error %v", request, err)
		}
		return killed
	})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	if got := w.finishRotation(secret); got != "other" {
		t.Errorf("request %q", got)
	}
	w.must(w.run(one.setupRotate, one.rotate)) // The request it joined is also the one it resumes.
	if got := w.finishRotation(secret); got != "other" {
		t.Errorf("request %q after the command was resumed", got)
	}
}

func TestRotationNeedsAKey(t *testing.T) {
	w := newWorld(t)
	one, secret := w.encrypted("one", map[string]string{anywherev1.EncryptionStageAnnotation: "Adding"})
	expect := func(want string) {
		t.Helper()
		err := w.run(one.setupRotate)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	expect(`cluster "one" is still introducing its encryption key (stage Adding): wait until it is ready`)
	w.must(w.client.Delete(t.Context(), secret))
	expect(`cluster "one" has no encryption key: add etcdEncryption with a secretbox provider to its spec`)
}
