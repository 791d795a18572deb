package workload

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// hostile returns a connection to an API server that answers as the test says.
func hostile(t *testing.T, handle http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	c, err := connect(client.ObjectKey{Namespace: "fleet", Name: "one"}, &rest.Config{Host: server.URL}, New(nil, Options{RequestTimeout: time.Minute}).options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// listOf answers with a list of as many items as fit into a response, compressed.
func listOf(kind, item string) http.HandlerFunc {
	const most = maxResponse - 1<<10
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		_, _ = io.WriteString(z, `{"kind":"`+kind+`","apiVersion":"v1","items":[`)
		block := strings.Repeat(item+",", 1<<12)
		for sent := 0; sent+len(block) < most; sent += len(block) {
			if _, err := io.WriteString(z, block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(z, item+`]}`)
		_ = z.Close()
	}
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestSmallResponseCannotBecomeGigabytes answers with a list of empty objects: 64 MiB that become
// 20 gigabytes once they are decoded.
func TestSmallResponseCannotBecomeGigabytes(t *testing.T) {
	for _, item := range []string{"{}", "null", "0"} {
		c := hostile(t, listOf("NodeList", item))
		for name, list := range map[string]func() error{
			"typed": func() error {
				_, err := c.Kubernetes().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				return err
			},
			"dynamic": func() error {
				_, err := c.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(t.Context(), metav1.ListOptions{})
				return err
			},
		} {
			var err error
			got := allocated(func() { err = list() })
			var large *bounded.TooLargeError
			if !errors.As(err, &large) || got > maxMemory {
				t.Errorf("%s list of %s: %d MiB allocated, error %v", name, item, got>>20, err)
			}
		}
	}
}

// TestLargeListsOfNodesAreRead lists a thousand Nodes with as many labels, images and conditions as
// kubelets report.
func TestLargeListsOfNodesAreRead(t *testing.T) {
	node := `{"metadata":{"name":"n","labels":{` + strings.Repeat(`"kubernetes.io/a-label":"with a value",`, 20) + `"b":"c"},"managedFields":[` +
		`{"manager":"kubelet","fieldsV1":{` + strings.Repeat(`"f:kubernetes.io/a-label":{},`, 80) + `"f:b":{}}}]},"status":{"conditions":[` +
		strings.Repeat(`{"type":"Ready","status":"True","lastHeartbeatTime":null,"reason":"KubeletReady","message":"kubelet is ready"},`, 8) + `{}],"images":[` +
		strings.Repeat(`{"names":["registry.example.com/an/image@sha256:`+strings.Repeat("0", 64)+`","registry.example.com/an/image:v1.2.3"],"sizeBytes":123456789},`, 50) + `{}]}}`
	c := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[`+strings.Repeat(node+",", 1000)+node+`]}`)
	})
	nodes, err := c.Kubernetes().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1001 {
		t.Errorf("read %v", err)
	}
}

func TestItemsOfAllKindsAreSmallerThanTheirEstimate(t *testing.T) {
	for kind, list := range scheme.Scheme.AllKnownTypes() {
		if items, ok := list.FieldByName("Items"); ok && items.Type.Kind() == reflect.Slice && items.Type.Elem().Size() > maxItem {
			t.Errorf("an item of %s takes %d bytes, more than %d", kind, items.Type.Elem().Size(), maxItem)
		}
	}
}

// TestOnlyMeasurableFormatsAreDecoded answers in formats that clients decode whether they requested
// them or not.
func TestOnlyMeasurableFormatsAreDecoded(t *testing.T) {
	for given, accepted := range map[string]bool{
		"application/json": true, "application/json;stream=watch": true, "text/plain; charset=utf-8": true, "": true,
		"application/vnd.kubernetes.protobuf": false, "application/vnd.kubernetes.protobuf;stream=watch": false,
		"application/yaml": false, "application/cbor": false, "application/cbor-seq": false, "application/json/x": false,
	} {
		m := &measurable{next: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {given}}, Body: http.NoBody}, nil
		})}
		response, err := m.RoundTrip(httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		var format *FormatError
		if accepted != (err == nil) || err != nil && !errors.As(err, &format) {
			t.Errorf("format %q: error %v", given, err)
		}
		if err == nil {
			_ = response.Body.Close()
			if response.Header.Get("Content-Type") == "" {
				t.Error("a response without a format is decoded in the format of the request")
			}
		}
	}
}

func TestBinaryFormatsAreNotRequested(t *testing.T) {
	for given, want := range map[string]string{
		"application/json":                                                   "application/json",
		"application/vnd.kubernetes.protobuf":                                "application/json",
		"application/vnd.kubernetes.protobuf, */*":                           "*/*",
		"application/cbor;as=Table,application/json;as=Table":                "application/json;as=Table",
		"application/vnd.kubernetes.protobuf;as=X,application/json;as=X,*/*": "application/json;as=X,*/*",
	} {
		var got string
		m := &measurable{next: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Accept")
			return nil, errors.New("no response")
		})}
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept", given)
		if response, err := m.RoundTrip(r); err == nil {
			_ = response.Body.Close()
		}
		if got != want || r.Header.Get("Accept") != given {
			t.Errorf("Accept %q became %q, want %q", given, got, want)
		}
	}
}
