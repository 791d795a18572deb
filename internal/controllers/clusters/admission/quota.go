package admission

import (
	"context"
	"errors"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Quotas compares Clusters with the quotas of their namespace.
type Quotas interface {
	// Exceeded returns why a Cluster may not become what it is in config, or "".
	Exceeded(ctx context.Context, was, config *spec.Config, counts func(*anywherev1.Cluster) bool) (string, error)
	// OfMachineConfig returns why a machine config may not become what it is, or "".
	OfMachineConfig(ctx context.Context, m *anywherev1.PacketMachineConfig) (string, error)
}

// withinQuota rejects a new or changed Cluster that exceeds a quota of its namespace, whoever
// creates it. Of Clusters that are created at the same time, several may pass; the controller makes
// the younger ones wait.
func (r *clusterRules) withinQuota(ctx context.Context, was, is *anywherev1.Cluster) error {
	if r.Quotas == nil || is.IsPaused() {
		return nil
	}
	config, err := spec.Gather(ctx, r.reader, is)
	var missing *spec.MissingError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	var before *spec.Config
	if was != nil {
		copied := *config
		copied.Cluster = was
		before = &copied
	}
	return rejectedBy(r.Quotas.Exceeded(ctx, before, config, nil))
}

// machineConfigWithinQuota rejects a machine config with which Clusters exceed a quota.
func (r *clusterRules) machineConfigWithinQuota(ctx context.Context, m *anywherev1.PacketMachineConfig) error {
	if r.Quotas == nil || m.Annotations[anywherev1.PausedAnnotation] == "true" {
		return nil
	}
	return rejectedBy(r.Quotas.OfMachineConfig(ctx, m))
}

func rejectedBy(problem string, err error) error {
	if err != nil || problem == "" {
		return err
	}
	return forbidden(problem)
}
