package cni

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// dialTimeout bounds one attempt to connect to the API. It is short because the address is that
	// of a Service: a connection that was opened before kube-proxy configured it never gets a
	// response.
	dialTimeout = 500 * time.Millisecond
	dialAgain   = 100 * time.Millisecond
	// dialGiveUp is when a failure is reported and left to the watch's own retries.
	dialGiveUp = 10 * time.Second
)

// Nodes lists and watches the nodes of a cluster. A client for a single kind halves the size of the
// program.
func Nodes(cfg *rest.Config) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/api", &corev1.SchemeGroupVersion
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.AcceptContentTypes, cfg.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	cfg.Dial = dial
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return cache.NewListWatchFromClient(client, "nodes", metav1.NamespaceAll, fields.Everything()), nil
}

// dial retries, so that the node is Ready soon after the API is reachable.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialGiveUp)
	defer cancel()
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	for {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialAgain):
		}
	}
}

// watch fills the store and sends a token for every relevant change to a channel of size one, which
// combines pending changes.
func (a *Agent) watch(ctx context.Context) error {
	a.changes = make(chan struct{}, 1)
	informer := cache.NewSharedIndexInformer(a.Nodes, &corev1.Node{}, 0, cache.Indexers{})
	a.store = informer.GetStore()
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { a.notify() },
		UpdateFunc: func(was, is any) { a.notifyIfMoved(was, is) },
		DeleteFunc: func(any) { a.notify() },
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("listing nodes: %w", context.Cause(ctx))
	}
	return nil
}

// trim keeps only the fields that Plan reads; the others change every few seconds.
func trim(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs}}
	kept.Name, kept.ResourceVersion, kept.UID = node.Name, node.ResourceVersion, node.UID
	kept.Status.Addresses = node.Status.Addresses
	return kept, nil
}

func (a *Agent) notify() {
	select {
	case a.changes <- struct{}{}:
	default:
	}
}

// notifyIfMoved ignores the heartbeats of nodes.
func (a *Agent) notifyIfMoved(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before == nil || after == nil || fingerprint(before) != fingerprint(after) {
		a.notify()
	}
}

func fingerprint(n *corev1.Node) string {
	return fmt.Sprint(n.Spec.PodCIDR, n.Spec.PodCIDRs, n.Status.Addresses)
}
