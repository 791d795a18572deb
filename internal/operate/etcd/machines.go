package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// findMachines lists the machines of the cluster but the skipped ones.
func (r *Restore) findMachines(ctx context.Context) ([]*machine, error) {
	all := &infrav1.PacketMachineList{}
	err := r.Objects.List(ctx, all, client.InNamespace(r.Cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: r.Cluster.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the machines of cluster %q: %w", r.Cluster.ObjectKey, err)
	}
	skip := sets.New(r.Skip...)
	machines := classify(all.Items, skip)
	if skip.Len() > 0 {
		return nil, fmt.Errorf("cluster %q has no machine %s", r.Cluster.ObjectKey, strings.Join(sets.List(skip), ", "))
	}
	if !slices.ContainsFunc(machines, func(m *machine) bool { return m.member }) {
		return nil, errors.New("no machine is left to restore etcd on")
	}
	if !slices.ContainsFunc(machines, func(m *machine) bool { return m.server }) {
		return nil, errors.New("no control plane machine is left")
	}
	return machines, nil
}

// classify sorts out which machines run what, and removes those to skip from both sets.
func classify(all []infrav1.PacketMachine, skip sets.Set[string]) []*machine {
	external := slices.ContainsFunc(all, func(m infrav1.PacketMachine) bool { return m.Labels[etcdv1.MemberLabel] != "" })
	var out []*machine
	for i := range all {
		m := &all[i]
		if skip.Has(m.Name) {
			skip.Delete(m.Name)
			continue
		}
		_, server := m.Labels[clusterv1.MachineControlPlaneLabel]
		_, device, _ := strings.Cut(ptr.Deref(m.Spec.ProviderID, ""), "://")
		out = append(out, &machine{
			name: m.Name, device: device, server: server,
			member: m.Labels[etcdv1.MemberLabel] != "" || server && !external,
		})
	}
	slices.SortFunc(out, func(a, b *machine) int { return strings.Compare(a.name, b.name) })
	return out
}

// inspectAll reads how all members and API servers run. All must respond: one that is merely
// unreachable would go on with its own data.
func (r *Restore) inspectAll(ctx context.Context) error {
	var problems []string
	for _, m := range r.machines {
		if !m.member && !m.server {
			continue
		}
		if err := r.inspect(ctx, m); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s; nothing was changed\nRestoring reaches machines through the metal service on this host. "+
			"If a machine is lost for good, name it in --without, and delete its Machine after the restore", strings.Join(problems, "; "))
	}
	return nil
}

// each calls do for machines, one after another.
func (r *Restore) each(which func(*machine) bool, do func(*machine) error) error {
	for _, m := range r.machines {
		if !which(m) {
			continue
		}
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

// all calls do for machines at the same time.
func (r *Restore) all(which func(*machine) bool, do func(*machine) error) error {
	failed := make([]error, len(r.machines))
	var group sync.WaitGroup
	for i, m := range r.machines {
		if which(m) {
			group.Go(func() { failed[i] = do(m) })
		}
	}
	group.Wait()
	return errors.Join(failed...)
}

func isMember(m *machine) bool       { return m.member }
func isServer(m *machine) bool       { return m.server }
func isControlPlane(m *machine) bool { return m.member || m.server }

// initialCluster is the value of etcd's flag.
func initialCluster(machines []*machine) string {
	var all []string
	for _, m := range machines {
		if m.member {
			all = append(all, m.etcd.name+"="+m.etcd.peer)
		}
	}
	return strings.Join(all, ",")
}
