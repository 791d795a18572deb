package helm

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/drover-dev/drover/internal/base/confined"
)

// remoteLookup lets templates in a child read objects through the parent, which has the connection
// to the cluster.
type remoteLookup struct{ call confined.Call }

// GetClientFor returns a client for a kind, and whether the kind is namespaced.
func (l remoteLookup) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	q := question{APIVersion: apiVersion, Kind: kind, Scope: true}
	a, err := ask(l.call, q)
	if err != nil {
		return nil, false, err
	}
	q.Scope = false
	return remoteResource{call: l.call, question: q}, a.Namespaced, nil
}

// remoteResource implements the methods that lookups use.
type remoteResource struct {
	dynamic.NamespaceableResourceInterface
	call     confined.Call
	question question
}

func (r remoteResource) Namespace(namespace string) dynamic.ResourceInterface {
	r.question.Namespace = namespace
	return r
}

func (r remoteResource) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	r.question.Name = name
	a, err := ask(r.call, r.question)
	if err != nil {
		return nil, err
	}
	if len(a.Object) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: r.question.Kind}, name)
	}
	return &unstructured.Unstructured{Object: a.Object}, nil
}

func (r remoteResource) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	a, err := ask(r.call, r.question)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	if len(a.Object) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: r.question.Kind}, "")
	}
	list.SetUnstructuredContent(a.Object)
	return list, nil
}

// answer reads what a template in a child looks up.
func (l *lookup) answer(ctx context.Context, q question) (reply, error) {
	resource, namespaced, err := l.GetClientFor(q.APIVersion, q.Kind)
	if err != nil || q.Scope {
		return reply{Namespaced: namespaced}, err
	}
	var from dynamic.ResourceInterface = resource
	if q.Namespace != "" {
		from = resource.Namespace(q.Namespace)
	}
	var found interface{ UnstructuredContent() map[string]any }
	if q.Name != "" {
		found, err = from.Get(ctx, q.Name, metav1.GetOptions{})
	} else {
		found, err = from.List(ctx, metav1.ListOptions{})
	}
	if apierrors.IsNotFound(err) {
		return reply{}, nil
	}
	if err != nil {
		return reply{}, err
	}
	return reply{Object: table(replaceNil(found.UnstructuredContent()))}, nil
}
