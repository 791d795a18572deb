package records

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
)

// pruneInterval is how often records of a namespace are listed at most.
const pruneInterval = 10 * time.Second

// isCount is the value of the label of records that stand for deleted ones.
const isCount = "true"

// byCluster has the records of a namespace by the name of their cluster, the oldest first.
type byCluster map[string][]metav1.PartialObjectMetadata

// NeedLeaderElection makes it run in standby replicas, too, because their webhooks write records.
func (*Recorder) NeedLeaderElection() bool { return false }

// Start enforces the limits in namespaces with new records until ctx is done. Requests don't wait
// for it.
func (r *Recorder) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, r.pruneDue, pruneInterval)
	return nil
}

// mark makes a namespace due for pruning.
func (r *Recorder) mark(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due == nil {
		r.due = map[string]bool{}
	}
	r.due[namespace] = true
}

// pruneDue prunes the namespaces that are due. Those that fail stay due.
func (r *Recorder) pruneDue(ctx context.Context) {
	r.mu.Lock()
	due := slices.Sorted(maps.Keys(r.due))
	r.due = nil
	r.mu.Unlock()
	for _, namespace := range due {
		if err := r.prune(ctx, namespace); err != nil {
			r.mark(namespace)
			ctrl.LoggerFrom(ctx).Error(err, "Pruning audit records failed", "namespace", namespace)
		}
	}
}

// prune deletes the records of a namespace that exceed the limits, and leaves their number: for
// each cluster that has other records, and for the namespace. Clusters that keep some come first:
// then all records that remain are newer than those of clusters that lose all.
func (r *Recorder) prune(ctx context.Context, namespace string) error {
	all, err := r.list(ctx, namespace)
	if err != nil {
		return err
	}
	evictions := plan(all, r.Keep, r.KeepNamespace)
	if len(evictions) == 0 {
		return nil
	}
	counts, err := r.counts(ctx, namespace)
	if err != nil {
		return err
	}
	emptied := byCluster{}
	for name, n := range evictions {
		if n == len(all[name]) {
			emptied[name] = all[name]
			continue
		}
		if err := r.evict(ctx, droverv1.AuditedCluster{Namespace: namespace, Name: name}, all[name][:n], counts[name]); err != nil {
			return err
		}
	}
	return r.empty(ctx, namespace, emptied, counts)
}

// plan returns how many of the oldest records of each cluster to delete. A cluster has its own
// limit. The limit of the namespace takes from the clusters with the most records first, so that
// changes of one cluster don't evict records of others. Zero means no limit.
func plan(all byCluster, keep, keepNamespace int) map[string]int {
	type candidate struct {
		cluster, position string
		newer             int
	}
	out := map[string]int{}
	var left []candidate
	for cluster, records := range all {
		for i := range records {
			newer := len(records) - 1 - i
			if keep > 0 && newer >= keep {
				out[cluster]++
				continue
			}
			left = append(left, candidate{cluster, audit.Position(&records[i]), newer})
		}
	}
	if keepNamespace <= 0 || len(left) <= keepNamespace {
		return out
	}
	slices.SortFunc(left, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.newer, a.newer), cmp.Compare(a.position, b.position))
	})
	for _, c := range left[:len(left)-keepNamespace] {
		out[c.cluster]++
	}
	return out
}

// list returns the records of a namespace, except counts.
func (r *Recorder) list(ctx context.Context, namespace string) (byCluster, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(droverv1.GroupVersion.WithKind("AuditRecordList"))
	if err := r.Live.List(ctx, all, client.MatchingLabels{droverv1.NamespaceLabel: namespace}); err != nil {
		return nil, fmt.Errorf("listing audit records of namespace %q: %w", namespace, err)
	}
	slices.SortFunc(all.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Compare(audit.Position(&a), audit.Position(&b))
	})
	out := byCluster{}
	for _, one := range all.Items {
		if one.Labels[droverv1.EvictedLabel] != isCount {
			name := one.Labels[droverv1.ClusterLabel]
			out[name] = append(out[name], one)
		}
	}
	return out, nil
}

// counts returns the counts of a namespace by cluster, the one of the namespace without a name.
func (r *Recorder) counts(ctx context.Context, namespace string) (map[string][]droverv1.AuditRecord, error) {
	all := &droverv1.AuditRecordList{}
	if err := r.Live.List(ctx, all, client.MatchingLabels{droverv1.NamespaceLabel: namespace, droverv1.EvictedLabel: isCount}); err != nil {
		return nil, fmt.Errorf("reading the number of evicted audit records of namespace %q: %w", namespace, err)
	}
	out := map[string][]droverv1.AuditRecord{}
	for _, one := range all.Items {
		out[one.Spec.Cluster.Name] = append(out[one.Spec.Cluster.Name], one)
	}
	return out, nil
}

// evict deletes the oldest records of a cluster. It writes their number first, together with the
// last of them, so that a run that was killed in between is repeated without counting twice.
func (r *Recorder) evict(ctx context.Context, cluster droverv1.AuditedCluster, oldest []metav1.PartialObjectMetadata, earlier []droverv1.AuditRecord) error {
	count := audit.Eviction(cluster, evicted(oldest, earlier), &oldest[len(oldest)-1])
	if err := r.create(ctx, count); err != nil {
		return err
	}
	if err := r.deleteCounts(ctx, earlier, count.Name); err != nil {
		return err
	}
	return r.deleteRecords(ctx, oldest)
}

// empty deletes all records of clusters, and adds their number to that of the namespace: without
// records, a cluster has no count of its own, because clusters can be created at will. Counts are
// deleted before records, which show a run that was killed in between what was counted.
func (r *Recorder) empty(ctx context.Context, namespace string, all byCluster, counts map[string][]droverv1.AuditRecord) error {
	if len(all) == 0 {
		return nil
	}
	current, err := r.countEmptied(ctx, namespace, all, counts)
	if err != nil {
		return err
	}
	if err := r.deleteCounts(ctx, counts[""], current); err != nil {
		return err
	}
	for name, records := range all {
		if err := r.deleteCounts(ctx, counts[name], ""); err != nil {
			return err
		}
		if err := r.deleteRecords(ctx, records); err != nil {
			return err
		}
	}
	return nil
}

// countEmptied writes the number of records of a namespace that were evicted together with all
// others of their cluster, and returns the name of the count. It skips clusters that were counted
// before: clusters lose their last records in the order of these records.
func (r *Recorder) countEmptied(ctx context.Context, namespace string, all byCluster, counts map[string][]droverv1.AuditRecord) (string, error) {
	latest := latestCount(counts[""])
	total, last := latest.Spec.Evicted, (*metav1.PartialObjectMetadata)(nil)
	for name, records := range all {
		newest := &records[len(records)-1]
		if audit.Position(newest) <= latest.Spec.EvictedThrough {
			continue
		}
		total += evicted(records, counts[name])
		if last == nil || audit.Position(newest) > audit.Position(last) {
			last = newest
		}
	}
	if last == nil {
		return latest.Name, nil
	}
	count := audit.Eviction(droverv1.AuditedCluster{Namespace: namespace}, total, last)
	return count.Name, r.create(ctx, count)
}

// evicted returns the number of records of a cluster that were evicted, including those that
// earlier counts stand for.
func evicted(oldest []metav1.PartialObjectMetadata, earlier []droverv1.AuditRecord) int64 {
	latest := latestCount(earlier)
	total := latest.Spec.Evicted
	for i := range oldest {
		if audit.Position(&oldest[i]) > latest.Spec.EvictedThrough {
			total += weight(&oldest[i])
		}
	}
	return total
}

// weight returns the number of changes that a record stands for.
func weight(record metav1.Object) int64 {
	if n, err := strconv.ParseInt(record.GetLabels()[droverv1.EvictedLabel], 10, 64); err == nil {
		return n
	}
	return 1
}

// latestCount returns the count that includes all others, or an empty one.
func latestCount(counts []droverv1.AuditRecord) droverv1.AuditRecord {
	var latest droverv1.AuditRecord
	for _, one := range counts {
		if one.Spec.Evicted > latest.Spec.Evicted {
			latest = one
		}
	}
	return latest
}

// deleteCounts deletes counts, except the current one.
func (r *Recorder) deleteCounts(ctx context.Context, counts []droverv1.AuditRecord, current string) error {
	for i := range counts {
		if counts[i].Name == current {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &counts[i])); err != nil {
			return fmt.Errorf("deleting the count %q of audit records: %w", counts[i].Name, err)
		}
	}
	return nil
}

// deleteRecords deletes records, the oldest first.
func (r *Recorder) deleteRecords(ctx context.Context, records []metav1.PartialObjectMetadata) error {
	for i := range records {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &records[i])); err != nil {
			return fmt.Errorf("deleting audit record %q: %w", records[i].Name, err)
		}
	}
	return nil
}
