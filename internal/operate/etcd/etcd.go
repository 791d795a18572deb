// Package etcd is what `drover etcd` does, with the privileges of the caller, who needs to read the
// Secrets of the cluster: package workload/etcd reads and maintains etcd while it responds, and
// this package restores it when it doesn't. Start with Find and Restore.
package etcd

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

// Find finds the cluster of a name, in any namespace if namespace is empty. The Cluster API cluster
// of a cluster of Drover has the same name and its own namespace.
func Find(ctx context.Context, plane *inspect.Plane, namespace, name string) (etcd.Cluster, error) {
	if namespace != "" {
		if _, err := plane.Find(ctx, namespace, name); err == nil {
			namespace = anywherev1.SystemNamespace
		}
	}
	found, err := plane.FindCAPI(ctx, namespace, name)
	if apierrors.IsForbidden(err) {
		return etcd.Cluster{}, fmt.Errorf("%w; the commands for etcd are for administrators, because they use the CA of the cluster", err)
	}
	if err != nil {
		return etcd.Cluster{}, err
	}
	key := found.Key()
	return etcd.Cluster{
		ObjectKey: key, Objects: plane.Client,
		API: func(ctx context.Context) (*rest.Config, error) { return plane.CAPIConfig(ctx, key) },
	}, nil
}
