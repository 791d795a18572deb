package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

var (
	errRefused   = errors.New("connection refused")
	errForbidden = apierrors.NewForbidden(anywherev1.GroupVersion.WithResource("clusters").GroupResource(), "one", errors.New("no role"))
)

// answers is a management plane that answers each read with the next of its errors, and with the
// last one from then on.
type answers struct {
	client.WithWatch

	errs  []error
	reads int
}

func (a *answers) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	err := a.errs[min(a.reads, len(a.errs)-1)]
	a.reads++
	return err
}

func (a *answers) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errForbidden
}

func TestDeniedRequestsAreRetriedWhileAPlaneStarts(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("starting")
	for name, tt := range map[string]struct {
		errs []error
		want error
		took time.Duration
	}{
		"a plane that starts":               {[]error{errRefused, errForbidden, errForbidden, nil}, nil, 3 * resync},
		"a plane that starts slowly":        {[]error{errRefused, unavailable, errForbidden, nil}, nil, 3 * resync},
		"a plane that starts twice":         {[]error{errRefused, errForbidden, errRefused, errForbidden, nil}, nil, 4 * resync},
		"permission that was never granted": {[]error{errForbidden}, errForbidden, 0},
		"permission that was revoked":       {[]error{errRefused, errForbidden}, errForbidden, resync + startGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &follower{plane: &inspect.Plane{Client: &answers{errs: tt.errs}}, key: client.ObjectKey{Name: "one"}}
				start := time.Now()
				err := f.until(t.Context(), time.Hour, func(*anywherev1.Cluster) bool { return true })
				if !errors.Is(err, tt.want) || time.Since(start) != tt.took {
					t.Errorf("got error %v after %s, want %v after %s", err, time.Since(start), tt.want, tt.took)
				}
			})
		})
	}
}

func TestPermissionLostWithoutAnOutageIsAnError(t *testing.T) {
	var o outage
	now := time.Now()
	for i, step := range []struct {
		err  error
		want bool
	}{{errRefused, true}, {errForbidden, true}, {nil, false}, {errForbidden, false}} {
		if got := o.observe(step.err, now); got != step.want {
			t.Errorf("request %d with error %v is temporary: got %t, want %t", i+1, step.err, got, step.want)
		}
	}
}
