package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// chartAnnotation is on Secrets of releases that Drover made. It identifies the archive and how it
// was rendered. Helm drops it when it rewrites a Secret, as it should, because the content may
// differ.
const chartAnnotation = "addons.cluster.x-k8s.io/chart"

// Labels of Helm on the Secrets of releases.
const (
	ownerLabel    = "owner"
	ownerHelm     = "helm"
	nameLabel     = "name"
	versionLabel  = "version"
	statusLabel   = "status"
	createdLabel  = "createdAt"
	modifiedLabel = "modifiedAt"
)

// systemLabels are Helm's own labels. Others belong to the user and stay with a release.
var systemLabels = map[string]bool{
	ownerLabel: true, nameLabel: true, versionLabel: true, statusLabel: true, createdLabel: true, modifiedLabel: true,
}

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// releases watches the Secrets of all releases on a cluster.
var releases = workload.Watch{Resource: secretsResource, Selector: ownerLabel + "=" + ownerHelm, By: nameLabel}

var (
	// errStale reports that the watch is behind.
	errStale = errors.New("release records changed concurrently")
	// errBroken reports that a record is unreadable.
	errBroken = errors.New("release record is unreadable")
)

// entry is a revision according to the labels of its Secret.
type entry struct {
	revision int
	status   string
	name     string
	// version is the resource version of the Secret, which prevents lost updates.
	version string
}

func (e entry) state() tool.State {
	return tool.State{Found: true, Revision: e.revision, Status: e.status, Stamp: stamp(e.revision, e.version)}
}

func stamp(revision int, resourceVersion string) string {
	return strconv.Itoa(revision) + "/" + resourceVersion
}

// history has the newest revision first.
type history []entry

func historyOf(secrets []*metav1.PartialObjectMetadata) history {
	var h history
	for _, s := range secrets {
		revision, err := strconv.Atoi(s.Labels[versionLabel])
		if err != nil || s.DeletionTimestamp != nil {
			continue
		}
		h = append(h, entry{revision: revision, status: s.Labels[statusLabel], name: s.Name, version: s.ResourceVersion})
	}
	slices.SortFunc(h, func(a, b entry) int { return b.revision - a.revision })
	return h
}

// record is a release and the Secret that stores it.
type record struct {
	*releasev1.Release
	// version is the Secret's, so that nobody's write is lost.
	version string
	chart   string
}

func (r *record) status() string { return r.Info.Status.String() }

func (r *record) state() tool.State {
	return tool.State{Found: true, Revision: r.Version, Status: r.status(), Stamp: stamp(r.Version, r.version)}
}

// records reads and writes the Secrets of one release.
type records struct {
	cluster *workload.Cluster
	id      tool.ID
}

func key(name string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision)
}

// watched returns the history according to the watch, and false if that hasn't synced.
func (r records) watched() (history, bool) {
	followed := r.cluster.Follow(releases)
	if !followed.Synced() {
		return nil, false
	}
	return historyOf(followed.Find(r.id.Namespace, r.id.Name)), true
}

// listed lists the history from the cluster, without contents.
func (r records) listed(ctx context.Context) (history, error) {
	client, err := metadata.NewForConfigAndClient(r.cluster.Config(), r.cluster.HTTP())
	if err != nil {
		return nil, err
	}
	selector := labels.Set{ownerLabel: ownerHelm, nameLabel: r.id.Name}.String()
	list, err := client.Resource(secretsResource).Namespace(r.id.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the records of release %q: %w", r.id.Name, err)
	}
	secrets := make([]*metav1.PartialObjectMetadata, 0, len(list.Items))
	for i := range list.Items {
		secrets = append(secrets, &list.Items[i])
	}
	return historyOf(secrets), nil
}

// get reads a revision. It returns errStale if it doesn't exist, and errBroken if it is unreadable.
func (r records) get(ctx context.Context, revision int) (*record, error) {
	secret, err := r.secrets().Get(ctx, key(r.id.Name, revision), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errStale
	}
	if err != nil {
		return nil, fmt.Errorf("reading revision %d of release %q: %w", revision, r.id.Name, err)
	}
	rec, err := decode(secret)
	if err != nil || rec.Version != revision || rec.Name != r.id.Name {
		return nil, errBroken
	}
	rec.Namespace = r.id.Namespace
	return rec, nil
}

// create writes a new revision. It returns errStale if the number is taken.
func (r records) create(ctx context.Context, rec *record) error {
	secret, err := encode(rec, createdLabel)
	if err != nil {
		return err
	}
	written, err := r.secrets().Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return errStale
	}
	if err != nil {
		return obj.Classify(fmt.Errorf("recording revision %d of release %q: %w", rec.Version, rec.Name, err))
	}
	rec.version = written.ResourceVersion
	return nil
}

// update writes an existing revision. It fails if the Secret changed since it was read.
func (r records) update(ctx context.Context, rec *record) error {
	secret, err := encode(rec, modifiedLabel)
	if err != nil {
		return err
	}
	written, err := r.secrets().Update(ctx, secret, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("recording revision %d of release %q: %w", rec.Version, rec.Name, err)
	}
	rec.version = written.ResourceVersion
	return nil
}

// relabel changes the status of an unreadable revision.
func (r records) relabel(ctx context.Context, e entry, status string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, statusLabel, status)
	_, err := r.secrets().Patch(ctx, e.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recording revision %d of release %q: %w", e.revision, r.id.Name, err)
	}
	return nil
}

func (r records) remove(ctx context.Context, e entry) error {
	err := r.secrets().Delete(ctx, e.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting revision %d of release %q: %w", e.revision, r.id.Name, err)
	}
	return nil
}

func (r records) secrets() corev1client.SecretInterface {
	return r.cluster.Kubernetes().CoreV1().Secrets(r.id.Namespace)
}
