package capi

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/workload/safeconfig"
)

// rejectedReason is the reason of the event about a kubeconfig that is not used.
const rejectedReason = "KubeconfigRejected"

// kubeconfigSuffix is what the name of the Secret has after the name of the cluster.
const kubeconfigSuffix = "-" + string(secret.Kubeconfig)

// kubeconfigs reads the Secrets that upstream connects to workload clusters with. Upstream would
// follow what a kubeconfig says, for example open files, with the privileges of the manager.
type kubeconfigs struct {
	client.Reader
	wiring *wiring
}

// Get returns a Secret with a kubeconfig that leads through links.
func (k kubeconfigs) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := k.Reader.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	s, ok := obj.(*corev1.Secret)
	if !ok || len(s.Data[secret.KubeconfigDataName]) == 0 {
		return nil
	}
	config, err := safeconfig.Check(ctx, k.wiring.reader, key.Namespace, func(p safeconfig.Policy) (*rest.Config, error) {
		return safeconfig.REST(s.Data[secret.KubeconfigDataName], p)
	})
	if err != nil {
		err = fmt.Errorf("reading the kubeconfig in Secret %q: %w", key, err)
		k.report(ctx, s, err)
		return err
	}
	cluster := client.ObjectKey{Namespace: key.Namespace, Name: strings.TrimSuffix(key.Name, kubeconfigSuffix)}
	link, err := k.wiring.links.connect(ctx, cluster, config)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(*link)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of Secret %q: %w", key, err)
	}
	s.Data = map[string][]byte{secret.KubeconfigDataName: data}
	return nil
}

// report records an event on the Cluster, because upstream only reports that the cluster is
// unreachable.
func (k kubeconfigs) report(ctx context.Context, s *corev1.Secret, err error) {
	cluster := &clusterv1.Cluster{}
	name := client.ObjectKey{Namespace: s.Namespace, Name: s.Labels[clusterv1.ClusterNameLabel]}
	if k.wiring.client.Get(ctx, name, cluster) != nil {
		return
	}
	k.wiring.events.Event(cluster, corev1.EventTypeWarning, rejectedReason, text.Truncate(text.Sentence(err.Error())))
}
