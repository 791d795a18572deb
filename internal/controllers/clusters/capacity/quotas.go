package capacity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/model/quota"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Quotas compares Clusters with the ResourceQuotas of their namespace. It reads both from the API
// server, since a cache may be behind; a namespace without a quota costs one request.
type Quotas struct {
	Live ctrlclient.Reader
	// Configs reads what Clusters reference.
	Configs ctrlclient.Reader
}

// CPUsOf returns the number of CPUs of a plan, or 0 if the plan is unknown.
func CPUsOf(plan string) int {
	p, _ := catalog.FindPlan(plan)
	return p.CPUs
}

// Exceeded returns why a Cluster may not become what it is in config, or "". Was is nil for a new
// one. Counts reports which of the other Clusters of the namespace count; nil means all.
func (q *Quotas) Exceeded(ctx context.Context, was, config *spec.Config, counts func(*anywherev1.Cluster) bool) (string, error) {
	hard, err := q.hard(ctx, config.Cluster.Namespace)
	if err != nil || len(hard) == 0 {
		return "", err
	}
	all := &anywherev1.ClusterList{}
	if err := q.Live.List(ctx, all, ctrlclient.InNamespace(config.Cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing Clusters: %w", err)
	}
	used := quota.Amounts{}
	for i := range all.Items {
		other := &all.Items[i]
		if other.Name == config.Cluster.Name || counts != nil && !counts(other) {
			continue
		}
		config, err := known(ctx, q.Configs, other)
		if err != nil {
			return "", err
		}
		used = used.Add(quota.Of(config, CPUsOf))
	}
	before := quota.Amounts{}
	if was != nil {
		before = quota.Of(was, CPUsOf)
	}
	return quota.Exceeded(hard, used, before, quota.Of(config, CPUsOf)), nil
}

// OfMachineConfig returns why a machine config may not become what it is, or "": the Clusters that
// reference it would exceed the quota.
func (q *Quotas) OfMachineConfig(ctx context.Context, m *anywherev1.PacketMachineConfig) (string, error) {
	hard, err := q.hard(ctx, m.Namespace)
	if err != nil || len(hard) == 0 {
		return "", err
	}
	all := &anywherev1.ClusterList{}
	if err := q.Live.List(ctx, all, ctrlclient.InNamespace(m.Namespace)); err != nil {
		return "", fmt.Errorf("listing Clusters: %w", err)
	}
	before, after := quota.Amounts{}, quota.Amounts{}
	for i := range all.Items {
		config, err := known(ctx, q.Configs, &all.Items[i])
		if err != nil {
			return "", err
		}
		before = before.Add(quota.Of(config, CPUsOf))
		if slices.Contains(spec.References(config.Cluster), anywherev1.Ref{Kind: anywherev1.PacketMachineConfigKind, Name: m.Name}) {
			config = replaced(config, m)
		}
		after = after.Add(quota.Of(config, CPUsOf))
	}
	return quota.Exceeded(hard, quota.Amounts{}, before, after), nil
}

// replaced returns a config with another machine config.
func replaced(c *spec.Config, m *anywherev1.PacketMachineConfig) *spec.Config {
	out := *c
	out.Machines = maps.Clone(c.Machines)
	if out.Machines == nil {
		out.Machines = map[string]*anywherev1.PacketMachineConfig{}
	}
	out.Machines[m.Name] = m
	return &out
}

// known returns a Cluster with those of its configs that exist.
func known(ctx context.Context, reader ctrlclient.Reader, c *anywherev1.Cluster) (*spec.Config, error) {
	config, err := spec.Gather(ctx, reader, c)
	var missing *spec.MissingError
	if errors.As(err, &missing) {
		return config, nil
	}
	return config, err
}

func (q *Quotas) hard(ctx context.Context, namespace string) (quota.Amounts, error) {
	all := &corev1.ResourceQuotaList{}
	if err := q.Live.List(ctx, all, ctrlclient.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ResourceQuotas: %w", err)
	}
	return quota.Hard(all.Items), nil
}
