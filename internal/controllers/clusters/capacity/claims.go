package capacity

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/spec"
)

// IsWaiting reports whether a Cluster waits for machines or a quota.
func IsWaiting(c *anywherev1.Cluster) bool {
	return meta.IsStatusConditionFalse(c.Status.Conditions, anywherev1.CapacityReserved)
}

// queue returns the claims of all Clusters that use the credentials, including that of a new one,
// if it is given. It also forgets what is known of Clusters that are gone or have their objects.
func (p *Planner) queue(ctx context.Context, credentials string, pool *pool, config *spec.Config) (Queue, error) {
	state, err := p.observe(ctx)
	if err != nil {
		return nil, err
	}
	var claims []Claim
	granted := map[types.UID]bool{}
	for i := range state.clusters.Items {
		c := &state.clusters.Items[i]
		own := config
		if own == nil || own.Cluster.UID != c.UID {
			own, err = gathered(ctx, p.Client, c)
		}
		if err != nil {
			return nil, err
		}
		if own == nil || demand.Credentials(own) != credentials {
			continue
		}
		claim, counts := state.claim(own, pool.granted[c.UID])
		counts = counts || own == config // It continues: a failure in its status is an old one.
		if counts {
			claims = append(claims, claim)
		}
		granted[c.UID] = claim.Granted && !state.created[c.UID]
	}
	for uid := range pool.granted {
		if !granted[uid] {
			delete(pool.granted, uid)
		}
	}
	return newQueue(claims), nil
}

// gathered returns a Cluster with its configs, or nil if some don't exist.
func gathered(ctx context.Context, reader ctrlclient.Reader, c *anywherev1.Cluster) (*spec.Config, error) {
	config, err := spec.Gather(ctx, reader, c)
	var missing *spec.MissingError
	if errors.As(err, &missing) {
		return nil, nil
	}
	return config, err
}

// state is what the cache has about all Clusters.
type state struct {
	clusters anywherev1.ClusterList
	// created are the Clusters that have a Cluster of Cluster API.
	created map[types.UID]bool
	// devices counts the machines of clusters by plan.
	devices map[string]map[string]int
}

func (p *Planner) observe(ctx context.Context) (*state, error) {
	k := &state{created: map[types.UID]bool{}, devices: map[string]map[string]int{}}
	made, machines := &clusterv1.ClusterList{}, &infrav1.PacketMachineList{}
	for _, list := range []ctrlclient.ObjectList{made, machines} {
		if err := p.Client.List(ctx, list, ctrlclient.InNamespace(anywherev1.SystemNamespace), ctrlclient.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	if err := p.Client.List(ctx, &k.clusters); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	byName := map[string]*clusterv1.Cluster{}
	for i := range made.Items {
		byName[made.Items[i].Name] = &made.Items[i]
	}
	for i := range k.clusters.Items {
		if c := &k.clusters.Items[i]; byName[c.Name] != nil && owner.Owns(c, byName[c.Name]) {
			k.created[c.UID] = true
		}
	}
	for i := range machines.Items {
		k.count(&machines.Items[i])
	}
	return k, nil
}

// count counts a machine whose device exists.
func (k *state) count(m *infrav1.PacketMachine) {
	name := m.Labels[clusterv1.ClusterNameLabel]
	if m.Spec.ProviderID == nil || name == "" {
		return
	}
	if k.devices[name] == nil {
		k.devices[name] = map[string]int{}
	}
	k.devices[name][m.Spec.MachineType]++
}

// claim returns what a Cluster claims, and whether that counts. A paused Cluster is managed
// elsewhere, and one with a failure does not continue; what they have counts.
func (k *state) claim(config *spec.Config, granted bool) (Claim, bool) {
	c := config.Cluster
	claim := Claim{Cluster: c, Granted: granted || k.created[c.UID], Needs: demand.Of(config)}
	if k.created[c.UID] {
		for _, m := range claim.Needs {
			m.Count = k.devices[c.Name][m.Plan]
			claim.Has = append(claim.Has, m)
		}
		claim.Needs = demand.Less(claim.Needs, claim.Has)
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		claim.Granted, claim.Needs = true, nil
	case c.IsPaused():
		claim.Needs = nil
		return claim, claim.Granted
	case !claim.Granted && c.Status.FailureReason != nil && !IsWaiting(c):
		return claim, false
	}
	return claim, true
}
