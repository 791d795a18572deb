package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// The names and their order are recorded in checkpoints.
func TestPhasesOfARenewal(t *testing.T) {
	move := []string{"SetupAndValidate", "PauseEksAAndFluxReconcile", "CreateBootstrapCluster", "InstallCAPI", "MoveManagementToBootstrap"}
	back := []string{"MoveManagementToWorkload", "UpdateClusterAndGitResources", "ResumeFluxReconcile", "DeleteBootstrap"}
	for kind, p := range planned(t) {
		fingerprints := map[string]bool{}
		for _, tt := range []struct {
			components []Component
			want       []string
		}{
			{nil, []string{"RenewEtcdCertificates", "RenewControlPlaneCertificates"}},
			{[]Component{Etcd}, []string{"RenewEtcdCertificates"}},
			{[]Component{ControlPlane}, []string{"RenewControlPlaneCertificates"}},
		} {
			plan, err := p.Renew(tt.components)
			if err != nil {
				t.Fatal(err)
			}
			want := append([]string{"SetupAndValidate"}, tt.want...)
			if kind == "management" {
				want = append(append(append([]string{}, move...), tt.want...), back...)
			}
			if diff := cmp.Diff(want, plan.Names()); diff != "" || plan.Command != "renew certificates" || plan.Again == "" {
				t.Errorf("%s: plan %q (-want +got):\n%s", kind, plan.Command, diff)
			}
			fingerprints[plan.Fingerprint] = true
		}
		if len(fingerprints) != 3 {
			t.Errorf("%s: a run would be resumed with other components: %v", kind, fingerprints)
		}
	}
}

// renewable creates a ready workload cluster.
func (w *world) renewable(name string) *Workload {
	w.Helper()
	one, secret := w.encrypted(name, nil)
	w.must(w.client.Delete(w.Context(), secret))
	return one
}

// completeRenewal plays the manager, and returns the request.
func (w *world) completeRenewal(name string) string {
	w.Helper()
	c := &anywherev1.Cluster{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, c))
	request := c.Annotations[anywherev1.RenewControlPlaneAnnotation]
	since, err := time.Parse(time.RFC3339, request)
	w.must(err)
	c.Status.CertificatesRenewed.ControlPlane = &metav1.Time{Time: since}
	w.must(w.client.Status().Update(w.Context(), c))
	return request
}

func renewControlPlane(one *Workload) func(context.Context, *phase.Progress) error {
	return func(ctx context.Context, p *phase.Progress) error { return one.renew(ctx, p, ControlPlane) }
}

func TestRenewalIsRequestedOnceAlthoughKilled(t *testing.T) {
	w := newWorld(t)
	one := w.renewable("one")
	killed := errors.New("killed")
	err := w.run(setupRenew(nil).of(one), func(ctx context.Context, p *phase.Progress) error {
		if _, err := one.requestRenewal(ctx, p, ControlPlane); err != nil {
			return err
		}
		return killed
	})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	request := w.completeRenewal("one") // The manager has completed it by the next run.
	w.must(w.run(setupRenew(nil).of(one), renewControlPlane(one)))
	if again := w.completeRenewal("one"); again != request {
		t.Errorf("requests %q and %q", request, again)
	}
	var next metav1.Time
	w.must(w.run(func(ctx context.Context, p *phase.Progress) (err error) {
		one.plane = nil
		if err := one.connect(ctx); err != nil {
			return err
		}
		for next.UTC().Format(time.RFC3339) <= request { // Requests are times in seconds.
			next, err = one.requestRenewal(ctx, p, ControlPlane)
			if err != nil {
				return err
			}
			w.completeRenewal("one")
		}
		return nil
	}))
}

func TestRenewalJoinsOneUnderWay(t *testing.T) {
	w := newWorld(t)
	one := w.renewable("one")
	c := &anywherev1.Cluster{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "one"}, c))
	c.Annotations = map[string]string{anywherev1.RenewControlPlaneAnnotation: "2026-05-01T12:00:00Z"}
	w.must(w.client.Update(t.Context(), c))
	w.must(w.run(func(ctx context.Context, p *phase.Progress) error {
		since, err := one.requestRenewal(ctx, p, ControlPlane)
		if got := since.UTC().Format(time.RFC3339); got != "2026-05-01T12:00:00Z" {
			t.Errorf("request %q", got)
		}
		return err
	}))
}

func TestRenewalIsCheckedFirst(t *testing.T) {
	w := newWorld(t)
	one := w.renewable("one")
	err := w.run(setupRenew([]Component{Etcd}).of(one))
	if err == nil || !strings.Contains(err.Error(), "no external etcd") || !strings.Contains(err.Error(), "--component control-plane") {
		t.Errorf("without external etcd: %v", err)
	}
	live, err := one.live(t.Context())
	w.must(err)
	w.must(annotate(t.Context(), w.client, live, map[string]string{anywherev1.PausedAnnotation: "true"}))
	if err := w.run(setupRenew(nil).of(one)); err == nil || !strings.Contains(err.Error(), "is paused") {
		t.Errorf("paused: %v", err)
	}
}
