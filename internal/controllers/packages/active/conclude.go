package active

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// conclude takes what happened beside the workers since the last time.
func (v *visit) conclude() {
	if outcome, ok := v.asks.Take(v.key()); ok {
		if a, ok := outcome.Value.(*answer); ok {
			v.memory.update(v.key(), func(k *knowledge) {
				k.through, k.unheard, k.heard = a.through, a.unheard, a.heard
				if a.unheard == nil {
					k.version = a.version
				}
			})
		}
	}
	if outcome, ok := v.looks.Take(v.key()); ok {
		if a, ok := outcome.Value.(*answer); ok {
			v.memory.update(v.key(), func(k *knowledge) {
				if a.fetched {
					k.fetch = a.fetch
					return
				}
				if a.look.err != nil && k.look.place == a.look.place {
					a.look.name = k.look.name // it is still the newest that is known
				}
				k.look = a.look
			})
		}
	}
	if outcome, ok := v.copies.Take(v.key()); ok {
		if work, ok := outcome.Value.(*copying); ok {
			v.memory.update(v.key(), func(k *knowledge) { k.copied = v.after(k.copied, work, outcome.Err) })
			v.tellOthers(work)
		}
	}
}

// after is what is known of copies once some work was done.
func (v *visit) after(was copied, work *copying, err error) copied {
	out := copied{through: work.through, withdrawn: work.withdrew, err: err, at: v.Clock.Now(), written: map[spot]mark{}, others: map[spot]string{}}
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

// tellOthers says which Secrets are in the way.
func (v *visit) tellOthers(work *copying) {
	for _, at := range sorted(work.others) {
		v.Events.Eventf(v.object, corev1.EventTypeWarning, "CredentialsNotOurs",
			"Secret %q on the cluster was made by somebody else and is left as it is", at)
	}
}
