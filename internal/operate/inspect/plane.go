// Package inspect reads a management plane and its workload clusters for people, with the
// privileges of the caller: clusters, the tree of objects of a cluster, why it is not ready, what
// happened to it and its kubeconfig; add-ons, what a change of one would do, and its revisions;
// packages and bundles.
//
// It never reconciles. The few things that it writes are what a user could write with kubectl.
// Start with Connect.
package inspect

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/model/scheme"
)

// Plane is a connection to a management plane.
type Plane struct {
	// Client has the privileges of the caller.
	Client client.WithWatch
	// Host is the address of the API server, for messages.
	Host string
	// Own is the namespace of the caller's kubeconfig. Lists fall back to it when the caller may
	// not read all namespaces.
	Own string

	config *rest.Config
}

// Connect returns a connection to a management plane. It sends no request.
func Connect(config *rest.Config) (*Plane, error) {
	kinds, err := scheme.New()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // A person waits, and the API server protects itself.
	c, err := client.NewWithWatch(config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return &Plane{Client: c, Host: config.Host, config: config}, nil
}

// explain adds what the caller can do about an error of the API server.
func (p *Plane) explain(doing string, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s: %s is not a Drover management plane: %w", doing, p.Host, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; choose a namespace that you have access to with --namespace", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// wrap adds context to an error, if there is one.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
