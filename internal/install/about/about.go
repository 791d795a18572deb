// Package about describes a management plane: its version of Drover, and the versions of Kubernetes
// and the package bundles that it offers. Every user of the plane may read the description, so that
// a command can check compatibility before it changes anything.
//
// The manager writes it (Keeper), commands read it (Read). It contains no secrets and nothing about
// clusters.
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

// Name is the name of the ConfigMap, which a shipped Role lets every authenticated user read.
const Name = "drover-about"

// Keys of the ConfigMap. Lists have one value per line.
const (
	versionKey    = "version"
	kubernetesKey = "kubernetes"
	bundlesKey    = "bundles"
)

// Plane describes a management plane.
type Plane struct {
	// Version is the version of Drover that runs there.
	Version string
	// Kubernetes are the releases for clusters, newest first.
	Kubernetes []string
	// Bundles are the package bundles that ship with it.
	Bundles []string
}

func key() client.ObjectKey {
	return client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: Name}
}

// Read reads the description of a management plane. The error is NotFound for an older Drover,
// which writes none.
func Read(ctx context.Context, reader client.Reader) (Plane, error) {
	found := &corev1.ConfigMap{}
	if err := reader.Get(ctx, key(), found); err != nil {
		return Plane{}, fmt.Errorf("reading the version of the management plane: %w", err)
	}
	return Plane{
		Version: found.Data[versionKey], Kubernetes: strings.Fields(found.Data[kubernetesKey]), Bundles: strings.Fields(found.Data[bundlesKey]),
	}, nil
}

// data returns the content of the ConfigMap.
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

// Has reports whether clusters can use a minor version of Kubernetes, such as 1.36. It is true for
// a plane that lists no versions.
func (p Plane) Has(minor string) bool {
	return len(p.Kubernetes) == 0 || slices.ContainsFunc(p.Kubernetes, func(release string) bool {
		return strings.HasPrefix(release, "v"+minor+".")
	})
}
