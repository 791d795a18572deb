package packages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// namespaceRetry is how long a failure to make the namespace is waited out.
const namespaceRetry = 10 * time.Second

// housing makes the namespace that bundles and their controllers are in, so that there is one to begin with.
func housing(c client.Client) manager.RunnableFunc {
	return func(ctx context.Context) error {
		_ = wait.PollUntilContextCancel(ctx, namespaceRetry, true, func(ctx context.Context) (bool, error) {
			err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: packagesv1.Namespace}}))
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "The namespace of bundles could not be made", "namespace", packagesv1.Namespace)
			}
			return err == nil, nil
		})
		return nil
	}
}
