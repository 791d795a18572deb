package manager_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/install/about"
)

func TestManagerRecordsItsVersion(t *testing.T) {
	server, _ := ready(t)
	c := newClient(t, server.Config)
	said := func() error {
		runs, err := about.Read(t.Context(), c)
		if err != nil {
			return err
		}
		if runs.Version != version.Get().Version || !slices.Contains(runs.Kubernetes, version.Kubernetes) || !runs.Has("1.35") || runs.Has("1.3") || len(runs.Bundles) == 0 {
			return fmt.Errorf("got description %+v", runs)
		}
		return nil
	}
	eventually(t, said)
	there := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "eksa-system", Name: about.Name}, there); err != nil {
		t.Fatal(err)
	}
	there.Data["version"] = "v99.0.0"
	if err := c.Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	eventually(t, said)
	if err := c.Delete(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	eventually(t, said)
}
