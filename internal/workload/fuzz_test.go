package workload

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requests are what the manager asks workload clusters for.
var requests = []func(context.Context, *Cluster) error{
	func(ctx context.Context, c *Cluster) error {
		_, err := c.Kubernetes().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	},
	func(ctx context.Context, c *Cluster) error {
		_, err := c.Kubernetes().CoreV1().Pods("kube-system").Get(ctx, "etcd", metav1.GetOptions{})
		return err
	},
	func(ctx context.Context, c *Cluster) error {
		_, err := c.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{})
		return err
	},
	func(_ context.Context, c *Cluster) error {
		_, _, err := c.Kubernetes().Discovery().ServerGroupsAndResources()
		return err
	},
	func(_ context.Context, c *Cluster) error {
		_, err := c.Version()
		return err
	},
	func(ctx context.Context, c *Cluster) error {
		return drain(c.Kubernetes().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{}))
	},
	func(ctx context.Context, c *Cluster) error {
		return drain(c.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Watch(ctx, metav1.ListOptions{}))
	},
}

// drain reads events until the response ends.
func drain(events watch.Interface, err error) error {
	if err != nil {
		return err
	}
	defer events.Stop()
	for range events.ResultChan() {
		continue
	}
	return nil
}

// FuzzResponses answers each request of the manager with any response. Clients must neither panic
// nor wait for more.
func FuzzResponses(f *testing.F) {
	for _, text := range []string{
		`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n","labels":{"a":"b"}},"status":{"images":[{"names":["a","b"]}]}},null]}`,
		`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1"}}]}`,
		`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get"]}]}`,
		`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}}{"type":"BOOKMARK","object":{"kind":"Node","apiVersion":"v1"}}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"details":{"retryAfterSeconds":9}}}`,
		`{"major":"1","minor":"36","gitVersion":"v1.36.4"}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"\u0000","reason":"NotFound","code":404}`,
	} {
		f.Add([]byte(text), "application/json", 200)
	}
	f.Add([]byte("k8s\x00\n\x0a\n\x02v1\x12\x04Node\x12\x02\n\x00"), "application/vnd.kubernetes.protobuf", 200)
	f.Add([]byte("items: [&a {}, *a]\nkind: NodeList\napiVersion: v1\n"), "application/yaml", 500)
	f.Fuzz(func(t *testing.T, data []byte, format string, status int) {
		c := answering(t, data, format, status)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for n, request := range requests {
			err := request(ctx, c)
			if ctx.Err() != nil {
				t.Fatalf("request %d did not end: %v", n, err)
			}
		}
	})
}

// answering returns a connection to a cluster that gives the same response to all requests.
func answering(t *testing.T, data []byte, format string, status int) *Cluster {
	t.Helper()
	config := &rest.Config{Host: "http://192.0.2.1", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200 + max(0, status-200)%400, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {format}}, Body: io.NopCloser(bytes.NewReader(data)),
		}, nil
	})}
	c, err := connect(client.ObjectKey{Namespace: "fleet", Name: "one"}, config, New(nil, Options{}).options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}
