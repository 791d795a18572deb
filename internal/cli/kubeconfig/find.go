package kubeconfig

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/inspect/fleet"
)

// source is where the kubeconfig of one cluster comes from.
type source struct {
	namespace string
	// key is how messages call the cluster.
	key   string
	get   func(context.Context) ([]byte, error)
	await func(ctx context.Context, tell func(waiting string)) ([]byte, error)
}

// find looks among the clusters that people describe first: who may see nothing else is to find theirs. Clusters of Cluster API that nobody
// describes come next.
func find(ctx context.Context, cfg *rest.Config, namespace, name string) (*source, error) {
	plane, err := inspect.Connect(cfg)
	if err != nil {
		return nil, err
	}
	if c, err := plane.Find(ctx, namespace, name); err == nil {
		return &source{
			namespace: c.Namespace, key: c.Namespace + "/" + c.Name,
			get: func(ctx context.Context) ([]byte, error) { return plane.KubeconfigOf(ctx, c) },
			await: func(ctx context.Context, tell func(string)) ([]byte, error) {
				return plane.AwaitKubeconfig(ctx, c, tell)
			},
		}, nil
	}
	clusters, err := fleet.Connect(cfg)
	if err != nil {
		return nil, err
	}
	c, err := clusters.Find(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &source{
		namespace: c.Namespace, key: c.Key(),
		get: func(ctx context.Context) ([]byte, error) { return clusters.Kubeconfig(ctx, c) },
		await: func(ctx context.Context, tell func(string)) ([]byte, error) {
			return clusters.AwaitKubeconfig(ctx, c, tell)
		},
	}, nil
}
