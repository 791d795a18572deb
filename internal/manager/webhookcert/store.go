package webhookcert

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
)

// SecretName is the Secret that replicas share.
const SecretName = "drover-webhook-tls"

// store reads and advances the Secret. Replicas agree because every write is either a creation or
// an update of the version that was read: the second writer reads again.
type store struct {
	client client.Client
	key    client.ObjectKey
}

// settle advances the Secret until plan has no step left, and returns its content and the next time
// to check. spare is what this process serves now; it restores a deleted Secret.
func (s store) settle(ctx context.Context, now time.Time, names []string, spare *material) (*material, time.Time, error) {
	var m *material
	var next time.Time
	contested := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	var err error
	// OnError itself reports a request that was canceled or timed out as a success.
	_ = retry.OnError(retry.DefaultBackoff, contested, func() error {
		m, next, err = s.attempt(ctx, now, names, spare)
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, next, fmt.Errorf("storing certificates in %q: %w; run with --install, or apply provider-components.yaml first", s.key, err)
	}
	if err != nil {
		return nil, next, fmt.Errorf("storing certificates in %q: %w", s.key, err)
	}
	return m, next, nil
}

func (s store) attempt(ctx context.Context, now time.Time, names []string, spare *material) (*material, time.Time, error) {
	secret, m, err := s.read(ctx, spare)
	if err != nil {
		return nil, now, err
	}
	changed := secret.ResourceVersion == ""
	for {
		todo, next := plan(now, m, names)
		if todo == stepNone {
			if !changed {
				return m, next, nil
			}
			return m, next, s.write(ctx, secret, m)
		}
		ctrl.LoggerFrom(ctx).Info("Changing webhook certificates", "step", todo)
		if m, err = m.apply(todo, now, names); err != nil {
			return nil, now, err
		}
		changed = true
	}
}

// read returns the Secret, or an empty one to be created, and its content. Unusable content counts
// as none.
func (s store) read(ctx context.Context, spare *material) (*corev1.Secret, *material, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, s.key, secret)
	if apierrors.IsNotFound(err) {
		return s.empty(), spare, nil
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := decode(secret.Data)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Replacing unusable webhook certificates", "secret", s.key)
		return secret, nil, nil
	}
	return secret, m, nil
}

func (s store) empty() *corev1.Secret {
	secret := &corev1.Secret{Type: corev1.SecretTypeTLS}
	secret.Name, secret.Namespace = s.key.Name, s.key.Namespace
	secret.Labels = map[string]string{config.LabelPartOf: config.PartOf}
	return secret
}

func (s store) write(ctx context.Context, secret *corev1.Secret, m *material) error {
	secret.Data = m.encode()
	if secret.ResourceVersion == "" {
		return s.client.Create(ctx, secret)
	}
	return s.client.Update(ctx, secret)
}

// apply returns the material after one step. It does not change its input, which may be shared.
func (m *material) apply(todo step, now time.Time, names []string) (*material, error) {
	if todo == stepCreate {
		return create(now, names)
	}
	next := *m
	switch todo {
	case stepAddCA:
		if err := next.addCA(now); err != nil {
			return nil, err
		}
	case stepIssueLeaf:
		if err := next.issueLeaf(now, names); err != nil {
			return nil, err
		}
	case stepDropCAs:
		next.dropCAs()
	default:
		return nil, fmt.Errorf("unknown step %q", todo)
	}
	return &next, nil
}
