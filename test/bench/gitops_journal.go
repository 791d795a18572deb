package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// journalKinds are what GitOps writes, from sources to machines.
var journalKinds = []schema.GroupVersionResource{
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"},
	{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
	{Group: "anywhere.eks.amazonaws.com", Version: "v1alpha1", Resource: "fluxconfigs"},
	{Group: "anywhere.eks.amazonaws.com", Version: "v1alpha1", Resource: "clusters"},
	{Group: "anywhere.eks.amazonaws.com", Version: "v1alpha1", Resource: "dockerdatacenterconfigs"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machinedeployments"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machines"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Resource: "packetmachines"},
}

// journal counts the objects that were written since the last reset.
type journal struct {
	stop    context.CancelFunc
	changed chan *unstructured.Unstructured

	mu      sync.Mutex
	written map[string]map[string]bool
}

// follow starts to watch what GitOps writes.
func (b *bench) follow(ctx context.Context) (*journal, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.home, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	cl, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	j := &journal{stop: cancel, changed: make(chan *unstructured.Unstructured, 10_000), written: map[string]map[string]bool{}}
	for _, kind := range journalKinds {
		if err := j.watch(ctx, cl, kind); err != nil {
			cancel()
			return nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
	}
	return j, nil
}

func (j *journal) watch(ctx context.Context, cl dynamic.Interface, kind schema.GroupVersionResource) error {
	list, err := cl.Resource(kind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	events, err := cl.Resource(kind).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	go func() {
		for event := range events.ResultChan() {
			if o, ok := event.Object.(*unstructured.Unstructured); ok {
				j.note(o)
			}
		}
	}()
	return nil
}

func (j *journal) note(o *unstructured.Unstructured) {
	group := o.GroupVersionKind().Group
	kind := o.GetKind()
	if kind == "Cluster" {
		kind += "." + strings.Split(group, ".")[0]
	}
	j.mu.Lock()
	if j.written[kind] == nil {
		j.written[kind] = map[string]bool{}
	}
	j.written[kind][o.GetNamespace()+"/"+o.GetName()] = true
	j.mu.Unlock()
	select {
	case j.changed <- o:
	default: // nobody waits
	}
}

// reset forgets what was written.
func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.written)
	for len(j.changed) > 0 {
		<-j.changed
	}
}

// counts returns how many objects of each kind were written.
func (j *journal) counts() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.written) == 0 {
		return "none"
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(j.written)) {
		all = append(all, fmt.Sprintf("%s %d", kind, len(j.written[kind])))
	}
	return strings.Join(all, ", ")
}

// await waits for an object that was written.
func (j *journal) await(ctx context.Context, what string, is func(*unstructured.Unstructured) bool) error {
	deadline := time.After(patience)
	for {
		select {
		case o := <-j.changed:
			if is(o) {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("timed out after %s waiting for: %s", patience, what)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
