// Package history stores earlier specs of HelmChartProxies as ControllerRevisions that they own. A
// rollout returns to the last good one, and users can list and restore them.
//
// It reads from the API server, because reads are rare and a cache would hold every
// ControllerRevision. Start with Keeper.Record and List.
package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// Limit is how many revisions are kept.
const Limit = 10

// Revision is a spec that a HelmChartProxy had.
type Revision struct {
	// Number increases; the highest is the current one.
	Number int64
	Digest string
	// Created is when the spec was first recorded.
	Created time.Time
	Spec    addonsv1.HelmChartProxySpec

	object *appsv1.ControllerRevision
}

// ErrNoRevision reports that a revision doesn't exist or is no longer kept.
var ErrNoRevision = errors.New("revision not found")

// Digest identifies what a HelmChartProxy rolls out. It ignores the cluster selector: selecting
// more clusters changes nothing on the others.
func Digest(spec *addonsv1.HelmChartProxySpec) (string, error) {
	s := spec.DeepCopy()
	s.ClusterSelector = metav1.LabelSelector{}
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding the spec: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// List returns the revisions of a HelmChartProxy, newest first.
func List(ctx context.Context, reader ctrlclient.Reader, hcp *addonsv1.HelmChartProxy) ([]Revision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := reader.List(ctx, list, ctrlclient.InNamespace(hcp.Namespace),
		ctrlclient.MatchingLabels{addonsv1.HelmChartProxyLabel: index.ChartLabel(hcp.Name)})
	if err != nil {
		return nil, fmt.Errorf("listing revisions of HelmChartProxy %q: %w", hcp.Name, err)
	}
	var out []Revision
	for i := range list.Items {
		r := &list.Items[i]
		if !metav1.IsControlledBy(r, hcp) {
			continue
		}
		revision := Revision{Number: r.Revision, Digest: r.Annotations[digestAnnotation], Created: r.CreationTimestamp.Time, object: r}
		if err := json.Unmarshal(r.Data.Raw, &revision.Spec); err != nil {
			return nil, fmt.Errorf("reading revision %q: not a HelmChartProxy spec", r.Name)
		}
		out = append(out, revision)
	}
	slices.SortFunc(out, func(a, b Revision) int { return int(b.Number - a.Number) })
	return out, nil
}

// Find returns the revision with a digest.
func Find(ctx context.Context, reader ctrlclient.Reader, hcp *addonsv1.HelmChartProxy, digest string) (*Revision, error) {
	all, err := List(ctx, reader, hcp)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Digest == digest {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("finding revision %q of HelmChartProxy %q: %w", digest, hcp.Name, ErrNoRevision)
}

// Keeper records revisions.
type Keeper struct {
	// Reader reads from the API server.
	Reader ctrlclient.Reader
	Client ctrlclient.Client
}

const digestAnnotation = "addons.cluster.x-k8s.io/digest"

// Record makes the current spec the newest revision if it is not, and deletes old ones except the
// one with the digest good.
func (k Keeper) Record(ctx context.Context, hcp *addonsv1.HelmChartProxy, good string) error {
	digest, err := Digest(&hcp.Spec)
	if err != nil {
		return err
	}
	all, err := List(ctx, k.Reader, hcp)
	if err != nil {
		return err
	}
	if len(all) > 0 && all[0].Digest == digest {
		return nil
	}
	var next int64 = 1
	if len(all) > 0 {
		next = all[0].Number + 1
	}
	if at := slices.IndexFunc(all, func(r Revision) bool { return r.Digest == digest }); at >= 0 {
		return k.renumber(ctx, all[at].object, next)
	}
	if err := k.create(ctx, hcp, digest, next); err != nil {
		return err
	}
	return k.prune(ctx, all, good)
}

func (k Keeper) create(ctx context.Context, hcp *addonsv1.HelmChartProxy, digest string, number int64) error {
	data, err := json.Marshal(hcp.Spec)
	if err != nil {
		return fmt.Errorf("encoding the spec: %w", err)
	}
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hcp.Namespace, Name: name(hcp.Name, digest),
			Labels:          map[string]string{addonsv1.HelmChartProxyLabel: index.ChartLabel(hcp.Name)},
			Annotations:     map[string]string{digestAnnotation: digest},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(hcp, addonsv1.GroupVersion.WithKind("HelmChartProxy"))},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
	err = k.Client.Create(ctx, r)
	if ctrlclient.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("recording revision %d of HelmChartProxy %q: %w", number, hcp.Name, err)
	}
	return nil
}

func (k Keeper) renumber(ctx context.Context, r *appsv1.ControllerRevision, number int64) error {
	before := r.DeepCopy()
	r.Revision = number
	if err := k.Client.Patch(ctx, r, ctrlclient.MergeFrom(before)); err != nil {
		return fmt.Errorf("renumbering revision %q: %w", r.Name, err)
	}
	return nil
}

// prune deletes old revisions to make room for one more.
func (k Keeper) prune(ctx context.Context, all []Revision, good string) error {
	for i, r := range all {
		if i < Limit-1 || r.Digest == good {
			continue
		}
		if err := ctrlclient.IgnoreNotFound(k.Client.Delete(ctx, r.object)); err != nil {
			return fmt.Errorf("deleting revision %q: %w", r.object.Name, err)
		}
	}
	return nil
}

// name truncates a long name so that the digest fits.
func name(hcp, digest string) string {
	const longest = 253
	return hcp[:min(len(hcp), longest-len(digest)-1)] + "-" + digest
}

// At returns a HelmChartProxy as a revision had it, or the previous one if number is 0. The cluster
// selector, the rollout settings and the service account stay as they are.
func At(ctx context.Context, reader ctrlclient.Reader, hcp *addonsv1.HelmChartProxy, number int64) (*addonsv1.HelmChartProxy, *Revision, error) {
	all, err := List(ctx, reader, hcp)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(all, func(r Revision) bool { return r.Number == number })
	if number == 0 {
		at = min(1, len(all)-1)
	}
	if at < 0 || (number == 0 && len(all) < 2) {
		return nil, nil, fmt.Errorf("restoring revision %d of HelmChartProxy %q: %w", number, hcp.Name, ErrNoRevision)
	}
	out := hcp.DeepCopy()
	out.Spec = all[at].Spec
	out.Spec.ClusterSelector, out.Spec.Rollout = hcp.Spec.ClusterSelector, hcp.Spec.Rollout
	out.Spec.ServiceAccountName = hcp.Spec.ServiceAccountName
	return out, &all[at], nil
}

// Restore gives a HelmChartProxy the spec that At returns.
func Restore(ctx context.Context, client ctrlclient.Client, hcp *addonsv1.HelmChartProxy, number int64) (*Revision, error) {
	restored, r, err := At(ctx, client, hcp, number)
	if err != nil {
		return nil, err
	}
	before := hcp.DeepCopy()
	hcp.Spec = restored.Spec
	if err := client.Patch(ctx, hcp, ctrlclient.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("restoring revision %d of HelmChartProxy %q: %w", r.Number, hcp.Name, err)
	}
	return r, nil
}
