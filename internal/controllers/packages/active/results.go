package active

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// collectResults stores the results of requests that finished since the last reconcile.
func collectResults(_ context.Context, v *visit) error {
	if outcome, ok := v.versionQueries.Take(v.Key()); ok {
		if a, ok := outcome.Value.(*answer); ok {
			v.memory.Update(v.Key(), func(k *knowledge) {
				k.through, k.versionErr, k.queriedAt = a.through, a.versionErr, a.queriedAt
				if a.versionErr == nil {
					k.version = a.version
				}
			})
		}
	}
	if outcome, ok := v.bundleChecks.Take(v.Key()); ok {
		if a, ok := outcome.Value.(*answer); ok {
			v.memory.Update(v.Key(), func(k *knowledge) {
				if a.fetched {
					k.activeCheck = a.activeCheck
					return
				}
				if a.latestCheck.err != nil && k.latestCheck.place == a.latestCheck.place {
					a.latestCheck.name = k.latestCheck.name // still the newest known bundle
				}
				k.latestCheck = a.latestCheck
			})
		}
	}
	if outcome, ok := v.copies.Take(v.Key()); ok {
		if work, ok := outcome.Value.(*copying); ok {
			v.memory.Update(v.Key(), func(k *knowledge) { k.copied = v.after(k.copied, work, outcome.Err) })
			v.recordForeign(work)
		}
	}
	return nil
}

// after returns what is known about copies after work was done.
func (v *visit) after(was copied, work *copying, err error) copied {
	out := copied{through: work.through, withdrawn: work.withdrawnAll, err: err, at: v.Clock.Now(), written: map[secretKey]writtenCopy{}, others: map[secretKey]string{}}
	if was.through == work.through {
		maps.Copy(out.written, was.written)
		maps.Copy(out.others, was.others)
	}
	maps.Copy(out.written, work.written)
	maps.Copy(out.others, work.others)
	for _, at := range work.removed {
		delete(out.written, at)
	}
	return out
}

// recordForeign records events for Secrets of others that have the name of a copy.
func (v *visit) recordForeign(work *copying) {
	for _, at := range sorted(work.others) {
		v.Events.Eventf(v.Object, corev1.EventTypeWarning, "CredentialsNotOurs",
			"Kept Secret %q on the cluster because it was not created by Drover", at)
	}
}
