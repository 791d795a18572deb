package schedule

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"github.com/robfig/cron/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// setupWebhook adds the webhook, which rejects what the controller could not follow.
func setupWebhook(mgr ctrl.Manager) error {
	if err := ctrl.NewWebhookManagedBy(mgr, &droverv1.EtcdSnapshotSchedule{}).WithValidator(rules{}).Complete(); err != nil {
		return fmt.Errorf("adding the webhook of EtcdSnapshotSchedule: %w", err)
	}
	return nil
}

// rules are the rules of a schedule that need nothing else.
type rules struct{}

// ValidateCreate checks a new schedule.
func (rules) ValidateCreate(_ context.Context, s *droverv1.EtcdSnapshotSchedule) (admission.Warnings, error) {
	_, _, err := read(s)
	return nil, rejection(err)
}

// ValidateUpdate checks a changed schedule.
func (r rules) ValidateUpdate(ctx context.Context, _, s *droverv1.EtcdSnapshotSchedule) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, s)
}

// ValidateDelete accepts every deletion. What was saved stays.
func (rules) ValidateDelete(context.Context, *droverv1.EtcdSnapshotSchedule) (admission.Warnings, error) {
	return nil, nil
}

func rejection(err error) error {
	if err == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error(),
	}}
}

// read returns when snapshots are due and for whom they are encrypted, or what is wrong with a
// spec. It never repeats what is given as a recipient: it may be a private key.
func read(s *droverv1.EtcdSnapshotSchedule) (cron.Schedule, []age.Recipient, error) {
	when, err := parse(s.Spec.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.schedule: %w", err)
	}
	var recipients []age.Recipient
	for i, text := range s.Spec.Recipients {
		recipient, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, nil, fmt.Errorf("spec.recipients[%d] is not an age recipient such as age1…, a public key", i)
		}
		recipients = append(recipients, recipient)
	}
	if err := checkLocation(s.Spec.Location); err != nil {
		return nil, nil, fmt.Errorf("spec.location: %w", err)
	}
	if s.Spec.SecretRef == nil && strings.HasPrefix(s.Spec.Location, "s3://") {
		return nil, nil, fmt.Errorf("spec.secretRef must name a Secret with %s and %s", storage.S3Variables.AccessKey, storage.S3Variables.SecretKey)
	}
	return when, recipients, nil
}

func checkLocation(location string) error {
	if !strings.Contains(location, "://") && !filepath.IsAbs(location) {
		return fmt.Errorf("%q is not an absolute path; use one, oci://REGISTRY/REPOSITORY or s3://BUCKET/PREFIX", location)
	}
	signed := storage.Access{S3: storage.S3Access{AccessKey: "any", SecretKey: "any"}}
	_, err := storage.Open(location, storage.Cluster{Namespace: "any", Name: "any"}, signed)
	return err
}
