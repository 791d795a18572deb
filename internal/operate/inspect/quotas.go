package inspect

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/model/quota"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Quota is what the clusters of a namespace use of one resource, and may use.
type Quota struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	Used      int64  `json:"used"`
	// Quota is nil if nothing limits the resource.
	Quota *int64 `json:"quota"`
}

// Quotas returns the quotas of a namespace, or of all namespaces that have clusters or quotas for
// them if it is empty.
func (p *Plane) Quotas(ctx context.Context, namespace string) ([]Quota, error) {
	hard, err := p.hardQuotas(ctx, namespace)
	if err != nil {
		return nil, err
	}
	used, err := p.usage(ctx, namespace)
	if err != nil {
		return nil, err
	}
	namespaces := maps.Clone(hard)
	maps.Copy(namespaces, used)
	var out []Quota
	for _, ns := range slices.Sorted(maps.Keys(namespaces)) {
		for _, key := range quota.Keys() {
			q := Quota{Namespace: ns, Resource: key, Used: used[ns][key]}
			if limit, found := hard[ns][key]; found {
				q.Quota = &limit
			}
			out = append(out, q)
		}
	}
	return out, nil
}

// hardQuotas returns the quotas by namespace.
func (p *Plane) hardQuotas(ctx context.Context, namespace string) (map[string]quota.Amounts, error) {
	list := &corev1.ResourceQuotaList{}
	err := p.Client.List(ctx, list, client.InNamespace(namespace))
	if apierrors.IsForbidden(err) && namespace == "" && p.Own != "" {
		err = p.Client.List(ctx, list, client.InNamespace(p.Own))
	}
	if err != nil {
		return nil, p.explain("listing quotas", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.ResourceQuota) int { return cmp.Compare(a.Namespace, b.Namespace) })
	out := map[string]quota.Amounts{}
	for i := range list.Items {
		all := slices.DeleteFunc(slices.Clone(list.Items), func(q corev1.ResourceQuota) bool { return q.Namespace != list.Items[i].Namespace })
		if hard := quota.Hard(all); len(hard) > 0 {
			out[list.Items[i].Namespace] = hard
		}
	}
	return out, nil
}

// usage returns what clusters count as, by namespace.
func (p *Plane) usage(ctx context.Context, namespace string) (map[string]quota.Amounts, error) {
	all, err := p.Clusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]quota.Amounts{}
	for i := range all {
		config, err := p.gatherKnown(ctx, &all[i])
		if err != nil {
			return nil, err
		}
		out[all[i].Namespace] = quota.Of(config, cpusOf).Add(out[all[i].Namespace])
	}
	return out, nil
}

// gatherKnown returns a Cluster with those of its configs that exist.
func (p *Plane) gatherKnown(ctx context.Context, c *anywherev1.Cluster) (*spec.Config, error) {
	config, err := spec.Gather(ctx, p.Client, c)
	var missing *spec.MissingError
	if errors.As(err, &missing) {
		return config, nil
	}
	return config, err
}

func cpusOf(plan string) int {
	found, _ := catalog.FindPlan(plan)
	return found.CPUs
}
