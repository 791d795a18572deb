package change

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
)

const (
	// lifetime is how long a finished change is kept, so that whoever waits for it sees the result.
	lifetime = time.Hour
	// kept is how many finished changes of a cluster are kept at most.
	kept = 20
)

// expire deletes a finished change that is old, or that enough newer ones follow.
func (c *Controller) expire(ctx context.Context, s *scope) error {
	left := finishedAt(s.change).Add(lifetime).Sub(c.Clock.Now())
	if left > 0 && newerFinished(s.change, s.others) < kept {
		s.next = left
		return nil
	}
	return client.IgnoreNotFound(c.Client.Delete(ctx, s.change, client.Preconditions{UID: &s.change.UID}))
}

// newerFinished counts the changes that finished after another one.
func newerFinished(change *droverv1.GitChange, others []droverv1.GitChange) int {
	n := 0
	for i := range others {
		if !progress.IsFinished(&others[i]) {
			continue
		}
		order := finishedAt(&others[i]).Compare(finishedAt(change))
		if order > 0 || order == 0 && isOlder(change, &others[i]) {
			n++
		}
	}
	return n
}
