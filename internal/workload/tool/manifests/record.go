package manifests

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

const (
	recordPrefix  = "drover.addon."
	recordType    = corev1.SecretType("addons.cluster.x-k8s.io/manifests.v1")
	recordKey     = "record"
	revisionLabel = "addons.cluster.x-k8s.io/revision"
	statusLabel   = "addons.cluster.x-k8s.io/status"
	selector      = tool.OwnerLabel + "=" + tool.OwnerDrover
	// maxRecordSize limits the uncompressed size of a record.
	maxRecordSize = 64 << 20
)

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// allRecords watches the records of all installations on a cluster, and their other Secrets.
var allRecords = workload.Watch{Resource: secretsResource, Selector: selector, By: tool.NameLabel}

// errStale reports that the watch is behind.
var errStale = errors.New("installation record changed concurrently")

// revision is a package rendered into objects.
type revision struct {
	Number  int       `json:"revision"`
	Package string    `json:"package"`
	Version string    `json:"version"`
	Updated time.Time `json:"updated"`
	// Fingerprint is a digest of the archive and the values.
	Fingerprint string           `json:"fingerprint"`
	Objects     []map[string]any `json:"objects"`
}

// record is what is stored about an installation.
type record struct {
	revision

	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	// Before lists objects of earlier revisions that may still exist and must be deleted.
	Before []reference `json:"before,omitempty"`
	// Again is the revision that this one restores, or 0.
	Again int `json:"again,omitempty"`
	// Last is the previous revision, if it was deployed.
	Last *revision `json:"last,omitempty"`

	// version is the resource version of the Secret, which prevents lost updates.
	version string
	// broken reports that the content of the Secret is unreadable.
	broken bool
}

// reference identifies an object.
type reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (r *record) state() tool.State {
	return tool.State{Found: true, Revision: r.Number, Status: r.Status, Stamp: stamp(r.Number, r.version)}
}

func stamp(revision int, resourceVersion string) string {
	return strconv.Itoa(revision) + "/" + resourceVersion
}

// all returns the objects of the revision.
func (r *revision) all() []*object {
	out := make([]*object, 0, len(r.Objects))
	for _, content := range r.Objects {
		out = append(out, &object{Object: objects.Object{Unstructured: &unstructured.Unstructured{Object: content}}})
	}
	return out
}

// leftovers returns objects of earlier revisions that may still exist.
func (r *record) leftovers() []*object {
	out := make([]*object, 0, len(r.Before))
	for _, ref := range r.Before {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(ref.APIVersion)
		u.SetKind(ref.Kind)
		u.SetNamespace(ref.Namespace)
		u.SetName(ref.Name)
		out = append(out, &object{Object: objects.Object{Unstructured: u}})
	}
	return out
}

// records reads and writes the record of one installation.
type records struct {
	cluster *workload.Cluster
	id      tool.ID
}

func (r records) name() string { return recordPrefix + r.id.Name }

func (r records) secrets() corev1client.SecretInterface {
	return r.cluster.Kubernetes().CoreV1().Secrets(r.id.Namespace)
}

// watched returns the state according to the watch, and false if that hasn't synced.
func (r records) watched() (tool.State, bool) {
	followed := r.cluster.Follow(allRecords)
	if !followed.Synced() {
		return tool.State{}, false
	}
	for _, s := range followed.Find(r.id.Namespace, r.id.Name) {
		if s.Name != r.name() || s.DeletionTimestamp != nil {
			continue
		}
		number, _ := strconv.Atoi(s.Labels[revisionLabel]) // 0 if it was changed
		return tool.State{Found: true, Revision: number, Status: s.Labels[statusLabel], Stamp: stamp(number, s.ResourceVersion)}, true
	}
	return tool.State{}, true
}

// get reads the record. It returns nil if there is none.
func (r records) get(ctx context.Context) (*record, error) {
	secret, err := r.secrets().Get(ctx, r.name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // no record
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of installation %q: %w", r.id.Name, err)
	}
	if secret.Labels[tool.OwnerLabel] != tool.OwnerDrover || secret.Type != recordType {
		return nil, &tool.TerminalError{Err: fmt.Errorf("reading the record of installation %q: Secret %q exists but is not an installation record; delete it first", r.id.Name, r.name())}
	}
	return decode(secret), nil
}

// decode falls back to the labels if a record is unreadable.
func decode(secret *corev1.Secret) *record {
	rec, err := unzip(secret.Data[recordKey])
	if err != nil {
		rec = &record{broken: true, Status: tool.Failed}
		rec.Number, _ = strconv.Atoi(secret.Labels[revisionLabel]) // 0 is before the first
	}
	rec.version = secret.ResourceVersion
	return rec
}

// unzip reads the content of a record, which the owner of the cluster may have written.
func unzip(data []byte) (*record, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zipped, maxRecordSize))
	if err == nil {
		err = safeyaml.CheckValues(text)
	}
	if err != nil {
		return nil, err
	}
	rec := &record{}
	return rec, json.Unmarshal(text, rec)
}

func (r records) encode(rec *record) (*corev1.Secret, error) {
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(zipper).Encode(rec), zipper.Close()); err != nil {
		return nil, fmt.Errorf("writing the record of installation %q: %w", r.id.Name, err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.id.Namespace, Name: r.name(), ResourceVersion: rec.version,
			Labels: map[string]string{
				tool.OwnerLabel: tool.OwnerDrover, tool.NameLabel: r.id.Name, statusLabel: rec.Status, revisionLabel: strconv.Itoa(rec.Number),
			},
		},
		Type: recordType, Data: map[string][]byte{recordKey: out.Bytes()},
	}, nil
}

// write creates or updates the Secret. It returns errStale if it was created concurrently.
func (r records) write(ctx context.Context, rec *record) error {
	secret, err := r.encode(rec)
	if err != nil {
		return err
	}
	var written *corev1.Secret
	if rec.version == "" {
		written, err = r.secrets().Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		written, err = r.secrets().Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if apierrors.IsAlreadyExists(err) {
		return errStale
	}
	if err != nil {
		return objects.Classify(fmt.Errorf("recording installation %q: %w", r.id.Name, err))
	}
	rec.version = written.ResourceVersion
	return nil
}

func (r records) remove(ctx context.Context) error {
	err := r.secrets().Delete(ctx, r.name(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the record of installation %q: %w", r.id.Name, err)
	}
	return nil
}
