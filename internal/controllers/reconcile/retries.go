package reconcile

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// firstRetry is the time until a failed reconcile is repeated. It doubles with each failure.
	firstRetry = 5 * time.Millisecond
	// lastRetry is the longest time. With controller-runtime's default of 17 minutes, an object that
	// failed a few times would remain as it is long after the cause has passed. Upstream's control
	// planes fail with every reconcile until their cluster is reachable, so for them two failed
	// writes more meant minutes.
	lastRetry = 15 * time.Second
	// retryRate is the number of retries per second of all objects of a controller together, and
	// retryBurst the number at once.
	retryRate, retryBurst = 10, 100
)

// retries returns when the queues of controllers repeat failed reconciles.
func retries() workqueue.TypedRateLimiter[ctrlreconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[ctrlreconcile.Request](firstRetry, lastRetry),
		&workqueue.TypedBucketRateLimiter[ctrlreconcile.Request]{Limiter: rate.NewLimiter(retryRate, retryBurst)},
	)
}
