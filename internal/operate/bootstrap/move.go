package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
)

// NotFoundError means that the cluster to move is on neither side.
type NotFoundError struct{ Cluster string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("cluster %q not found on the source or the destination of the move", e.Cluster)
}

// Move moves all objects of a cluster from one management plane to another: its Cluster API
// objects, add-ons, packages, configs and Secrets. It copies audit records. The objects are paused
// during the move, and deleted from the source only after all of them are on the destination. Both
// sides run the same Drover.
//
// It may be killed at any time and called again. At the end it resumes what it paused, and nothing
// else.
func Move(ctx context.Context, from, to *rest.Config, name string) error {
	source, err := newClient(from)
	if err != nil {
		return err
	}
	destination, err := newClient(to)
	if err != nil {
		return err
	}
	key, found, err := findCluster(ctx, source, name)
	if err == nil && !found {
		key, found, err = findUnfinished(ctx, destination, name)
	}
	if err != nil {
		return err
	}
	if found {
		if err := moveAll(ctx, source, destination, key); err != nil {
			return fmt.Errorf("moving cluster %q: %w", name, err)
		}
	}
	_, arrived, err := findCluster(ctx, destination, name)
	if err != nil {
		return err
	}
	if !arrived {
		return &NotFoundError{Cluster: name}
	}
	return resume(ctx, destination, name)
}

// Resume resumes reconciliation of a cluster that was paused for a move that will not be finished.
func Resume(ctx context.Context, at *rest.Config, name string) error {
	c, err := newClient(at)
	if err != nil {
		return err
	}
	return resume(ctx, c, name)
}

func moveAll(ctx context.Context, source, destination client.Client, key types.NamespacedName) error {
	if err := rejectDeleted(ctx, source, key); err != nil {
		return err
	}
	halfway, err := arrivedHalfway(ctx, source, key)
	if err != nil {
		return err
	}
	selected, err := prepare(ctx, source, destination, key)
	if err != nil {
		return err
	}
	return transfer(ctx, &sourceClient{Client: source, selection: selected, dispositions: map[types.UID]disposition{}, halfway: halfway}, destination)
}

// prepare pauses the cluster at the source, copies its records, and selects what moves.
func prepare(ctx context.Context, source, destination client.Client, key types.NamespacedName) (*selection, error) {
	if err := pause(ctx, source, key); err != nil {
		return nil, err
	}
	if err := keepIdentity(ctx, source, key.Name); err != nil {
		return nil, err
	}
	if err := copyRecords(ctx, source, destination, key.Name); err != nil {
		return nil, err
	}
	return gather(ctx, readers{source, destination}, key)
}

// transfer creates the objects at the destination, and then deletes them at the source.
func transfer(ctx context.Context, source *sourceClient, destination client.Client) error {
	return upstream(source).ObjectMover().Move(ctx, "", upstream(&targetClient{Client: destination}), false)
}

// rejectDeleted rejects a cluster that is being deleted, which a move would bring back. One that an
// earlier move began to delete is accepted.
func rejectDeleted(ctx context.Context, c client.Reader, key types.NamespacedName) error {
	found := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !found.DeletionTimestamp.IsZero() && found.Annotations[PausedForMove] == "" {
		return errors.New("the cluster is being deleted: wait until it is gone")
	}
	return nil
}

// arrivedHalfway reports whether the source has copies of an interrupted move in the opposite
// direction. They arrived paused and without status, so no controller has seen them since, and the
// originals may still be on the destination.
func arrivedHalfway(ctx context.Context, c client.Reader, key types.NamespacedName) (bool, error) {
	found := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, found); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	s := found.Status
	return found.Annotations[PausedForMove] == key.Name && s.Phase == "" && s.Initialization == (clusterv1.ClusterInitializationStatus{}), nil
}

// findCluster finds the only Cluster of a name, or the one in the system namespace.
func findCluster(ctx context.Context, c client.Reader, name string) (key types.NamespacedName, found bool, err error) {
	list := &clusterv1.ClusterList{}
	if err := c.List(ctx, list); err != nil {
		return key, false, fmt.Errorf("listing Clusters to find %q: %w", name, err)
	}
	for _, one := range list.Items {
		if one.Name != name {
			continue
		}
		if found && key.Namespace != SystemNamespace && one.Namespace != SystemNamespace {
			return key, false, fmt.Errorf("moving cluster %q: the name exists in namespaces %q and %q", name, key.Namespace, one.Namespace)
		}
		if !found || one.Namespace == SystemNamespace {
			key, found = client.ObjectKeyFromObject(&one), true
		}
	}
	return key, found, nil
}

// findUnfinished finds a Cluster that has arrived while other objects may not have: those that
// nothing owns move in no order.
func findUnfinished(ctx context.Context, c client.Reader, name string) (key types.NamespacedName, found bool, err error) {
	key, found, err = findCluster(ctx, c, name)
	if err != nil || !found {
		return key, false, err
	}
	arrived := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, arrived); err != nil {
		return key, false, client.IgnoreNotFound(err)
	}
	return key, arrived.Annotations[PausedForMove] == name, nil
}

// upstream returns Cluster API's own tools on top of a client.
func upstream(c client.Client) cluster.Client {
	return cluster.New(cluster.Kubeconfig{}, nil, cluster.InjectProxy(&connection{client: c}))
}

// connection returns an existing client. A move uses nothing else of the interface.
type connection struct {
	cluster.Proxy

	client client.Client
}

// NewClient implements cluster.Proxy.
func (c *connection) NewClient(context.Context) (client.Client, error) { return c.client, nil }
