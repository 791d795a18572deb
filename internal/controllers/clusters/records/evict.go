package records

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
)

// group is a set of records with a limit of its own, so that one cluster or tenant can't evict the
// records of another. A group without a cluster's name has all clusters of a namespace.
type group struct {
	cluster droverv1.AuditedCluster
	keep    int
}

func (g group) labels() client.MatchingLabels {
	out := client.MatchingLabels{droverv1.NamespaceLabel: g.cluster.Namespace}
	if g.cluster.Name != "" {
		out[droverv1.ClusterLabel] = g.cluster.Name
	}
	return out
}

// prune deletes the oldest records of each group of a record, if there are too many.
func (r *Recorder) prune(ctx context.Context, one *droverv1.AuditRecord) error {
	of := one.Spec.Cluster
	for _, g := range []group{{of, r.Keep}, {droverv1.AuditedCluster{Namespace: of.Namespace}, r.KeepNamespace}} {
		if !r.due(g) {
			continue
		}
		if err := r.evict(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether to look for old records: it requires a list of them, and happens with the
// first record of a group and then after every tenth of its limit.
func (r *Recorder) due(g group) bool {
	if g.keep <= 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written == nil {
		r.written = map[client.ObjectKey]int{}
	}
	key := client.ObjectKey{Namespace: g.cluster.Namespace, Name: g.cluster.Name}
	n := r.written[key]
	r.written[key] = n + 1
	return n%(g.keep/10+1) == 0
}

// evict deletes the oldest records of a group. It writes their number first, together with the last
// of them, so that a run that was killed in between is repeated without counting twice.
func (r *Recorder) evict(ctx context.Context, g group) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(droverv1.GroupVersion.WithKind("AuditRecordList"))
	if err := r.Live.List(ctx, all, g.labels()); err != nil {
		return fmt.Errorf("listing audit records: %w", err)
	}
	records, counts := g.split(all.Items)
	if len(records) <= g.keep {
		return nil
	}
	oldest := records[:len(records)-g.keep]
	latest, err := r.count(ctx, g, oldest, counts)
	if err != nil {
		return err
	}
	for _, old := range slices.Concat(oldest, counts) {
		if old.Name == latest {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &old)); err != nil {
			return fmt.Errorf("deleting old audit records: %w", err)
		}
	}
	return nil
}

// split separates records, the oldest first, from the counts of those that were evicted from the
// same group.
func (g group) split(all []metav1.PartialObjectMetadata) (records, counts []metav1.PartialObjectMetadata) {
	for _, one := range all {
		_, ofCluster := one.Labels[droverv1.ClusterLabel]
		switch {
		case one.Labels[droverv1.EvictedLabel] == "":
			records = append(records, one)
		case ofCluster == (g.cluster.Name != ""):
			counts = append(counts, one)
		}
	}
	slices.SortFunc(records, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Compare(audit.Position(&a), audit.Position(&b))
	})
	return records, counts
}

// count records how many records were evicted from a group, including those that earlier counts
// stand for, and returns the name of the record.
func (r *Recorder) count(ctx context.Context, g group, oldest, earlier []metav1.PartialObjectMetadata) (string, error) {
	var total int64
	through := ""
	if len(earlier) > 0 {
		counts := &droverv1.AuditRecordList{}
		if err := r.Live.List(ctx, counts, g.labels(), client.HasLabels{droverv1.EvictedLabel}); err != nil {
			return "", fmt.Errorf("reading the number of evicted audit records: %w", err)
		}
		for _, one := range counts.Items {
			if one.Spec.Cluster.Name == g.cluster.Name && one.Spec.Evicted > total {
				total, through = one.Spec.Evicted, one.Spec.EvictedThrough
			}
		}
	}
	for i := range oldest {
		if audit.Position(&oldest[i]) > through {
			total++
		}
	}
	one := audit.Eviction(g.cluster, total, &oldest[len(oldest)-1])
	return one.Name, r.create(ctx, one)
}
