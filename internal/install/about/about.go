// Package about describes a management plane: its version of Drover, and the versions of Kubernetes
// and the package bundles that it offers. Every user of the plane may read the description, so that
// a command can check compatibility before it changes anything.
//
// The manager keeps it (Keeper), commands read it (Read). It says nothing that is a secret and
// nothing of any cluster.
package about

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
)

// Name is that of the ConfigMap, which a Role that comes with Drover lets everybody read who is
// known to the API server.
const Name = "drover-about"

// Keys of the ConfigMap. Of several values each has a line.
const (
	versionKey    = "version"
	kubernetesKey = "kubernetes"
	bundlesKey    = "bundles"
)

// Plane describes a management plane.
type Plane struct {
	// Version is that of the Drover that runs there.
	Version string
	// Kubernetes are the releases that clusters can have, the newest first.
	Kubernetes []string
	// Bundles are those of packages that come with it.
	Bundles []string
}

func key() client.ObjectKey {
	return client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: Name}
}

// Read reads the description of a management plane. The error is NotFound if an older Drover runs
// there, which writes none.
func Read(ctx context.Context, reader client.Reader) (Plane, error) {
	found := &corev1.ConfigMap{}
	if err := reader.Get(ctx, key(), found); err != nil {
		return Plane{}, fmt.Errorf("reading what runs on the management plane: %w", err)
	}
	return Plane{
		Version: found.Data[versionKey], Kubernetes: strings.Fields(found.Data[kubernetesKey]), Bundles: strings.Fields(found.Data[bundlesKey]),
	}, nil
}

// data is what is written.
func (p Plane) data() map[string]string {
	return map[string]string{
		versionKey: p.Version, kubernetesKey: strings.Join(p.Kubernetes, "\n"), bundlesKey: strings.Join(p.Bundles, "\n"),
	}
}

func (p Plane) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key().Namespace, Name: Name, Labels: map[string]string{config.LabelPartOf: config.PartOf}},
		Data:       p.data(),
	}
}

// Has reports whether clusters can have a minor version of Kubernetes, such as 1.36. A plane that
// lists none may have it.
func (p Plane) Has(minor string) bool {
	return len(p.Kubernetes) == 0 || slices.ContainsFunc(p.Kubernetes, func(release string) bool {
		return strings.HasPrefix(release, "v"+minor+".")
	})
}
