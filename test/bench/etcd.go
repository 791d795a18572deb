package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
)

// measureEtcd compares a cluster of three control plane machines that run etcd with one whose etcd
// has three machines of its own. It replaces the members of the second one, saves their data, and
// restores all of them.
func measureEtcd(ctx context.Context, b *bench) error {
	if err := requireRoot(); err != nil {
		return err
	}
	if err := b.up(ctx); err != nil {
		return err
	}
	c := &commands{bench: b, dir: filepath.Join(b.work, "etcd")}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	stacked := &etcdCluster{commands: c, name: "stacked"}
	external := &etcdCluster{commands: c, name: "external", external: "\n  externalEtcdConfiguration: {count: 3}"}
	for _, step := range []func(context.Context) error{
		stacked.create, stacked.cost, stacked.delete,
		external.create, external.cost, external.replaceMembers, external.saveAndRestore, external.delete,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	row("external etcd compared with stacked", "%.2f times as long to create, %.2f times the memory, %.2f times the CPU when idle",
		external.created.Seconds()/stacked.created.Seconds(), float64(external.memory)/float64(stacked.memory), external.busy/stacked.busy)
	return nil
}

// etcdCluster is a cluster of three control plane machines.
type etcdCluster struct {
	*commands

	name, external string
	created        time.Duration
	memory         int64
	busy           float64
}

// with returns the arguments of a command about the cluster's spec.
func (e *etcdCluster) with(args ...string) []string {
	return append(args, "-f", e.name+".yaml", "--kubeconfig", filepath.Join(e.home, "kubeconfig"))
}

func (e *etcdCluster) create(ctx context.Context) error {
	text := strings.Replace(specOf(e.name, "management: false", 0), "{count: 1}", "{count: 3}"+e.external, 1)
	if err := os.WriteFile(e.file(e.name+".yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if e.created, err = e.here(ctx, e.with("create", "cluster")...); err == nil {
		row(e.name+": created", "%.1f s", e.created.Seconds())
	}
	return err
}

func (e *etcdCluster) delete(ctx context.Context) error {
	took, err := e.here(ctx, e.with("delete", "cluster", "--yes")...)
	if err == nil {
		row(e.name+": deleted", "%.1f s", took.Seconds())
	}
	return err
}

// cost reports the memory of the cluster's machines, and their CPU time when nothing happens.
func (e *etcdCluster) cost(ctx context.Context) error {
	if err := wait(ctx, settle); err != nil {
		return err
	}
	devices, _, err := e.devices(ctx)
	if err != nil {
		return err
	}
	before, err := machineUsage(devices)
	if err != nil {
		return err
	}
	if err := wait(ctx, e.idle); err != nil {
		return err
	}
	after, err := machineUsage(devices)
	if err != nil {
		return err
	}
	e.memory, e.busy = after.proportional, percent(after.cpu-before.cpu, e.idle)
	row(fmt.Sprintf("%s: %d machines when idle", e.name, len(devices)), "%d MiB, %.1f %% of a core", e.memory>>20, e.busy)
	return nil
}

// machineUsage adds up the processes of machines.
func machineUsage(devices []api.Device) (sum usage, err error) {
	for _, d := range devices {
		u, err := groupUsage(d.ID)
		if err != nil {
			return sum, err
		}
		sum.proportional, sum.cpu = sum.proportional+u.proportional, sum.cpu+u.cpu
	}
	return sum, nil
}

// devices returns the machines of the cluster, which are all that exist.
func (e *etcdCluster) devices(ctx context.Context) ([]api.Device, *admin.Client, error) {
	m, err := admin.Open(metal.Home{Dir: e.metalHome()})
	if err != nil {
		return nil, nil, err
	}
	all, err := m.Devices(ctx, nil)
	return all, m, err
}

// replaceMembers replaces each member by another machine, while the API server is asked all the
// time.
func (e *etcdCluster) replaceMembers(ctx context.Context) error {
	observing, stop := context.WithCancel(ctx)
	outage := make(chan time.Duration, 1)
	url, err := e.readyURL()
	if err != nil {
		stop()
		return err
	}
	go func() { outage <- longestOutage(observing, url) }()
	took, err := e.here(ctx, e.with("renew", "certificates", "-c", "etcd")...)
	stop()
	longest := <-outage
	if err == nil {
		row(e.name+": three members replaced", "%.1f s, %.1f s for each; the API didn't answer for up to %.1f s", took.Seconds(), took.Seconds()/3, longest.Seconds())
	}
	return err
}

// readyURL returns the address at which API servers say whether they and etcd are ready.
func (e *etcdCluster) readyURL() (string, error) {
	config, err := clientcmd.LoadFromFile(e.file(filepath.Join(e.name, e.name+"-eks-a-cluster.kubeconfig")))
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of cluster %q: %w", e.name, err)
	}
	for _, cluster := range config.Clusters {
		return cluster.Server + "/readyz", nil
	}
	return "", fmt.Errorf("the kubeconfig of cluster %q has no server", e.name)
}

// longestOutage asks until the context ends, and returns the longest time without an answer.
func longestOutage(ctx context.Context, url string) (longest time.Duration) {
	answered, probe := time.Now(), newProbe()
	for wait(ctx, probeInterval) == nil {
		if answers(ctx, probe, url) {
			longest = max(longest, time.Since(answered)-probeInterval)
			answered = time.Now()
		}
	}
	return longest
}

// saveAndRestore saves etcd, deletes the data of all members, and restores it.
func (e *etcdCluster) saveAndRestore(ctx context.Context) error {
	if err := os.WriteFile(e.file("passphrase"), []byte("bench\n"), 0o600); err != nil {
		return err
	}
	took, err := e.here(ctx, "etcd", "snapshot", e.name, "--to", e.file("snapshots"), "--passphrase-file", "passphrase")
	if err != nil {
		return err
	}
	row(e.name+": snapshot saved", "%.1f s, of which a second encrypts the key with the passphrase", took.Seconds())
	if err := e.loseEtcd(ctx); err != nil {
		return err
	}
	if took, err = e.here(ctx, "etcd", "restore", e.name, "--from", e.file("snapshots"), "--passphrase-file", "passphrase", "--yes"); err != nil {
		return err
	}
	row(e.name+": all members lost and restored", "%.1f s", took.Seconds())
	return nil
}

// loseEtcd deletes the data of all members.
func (e *etcdCluster) loseEtcd(ctx context.Context) error {
	devices, m, err := e.devices(ctx)
	if err != nil {
		return err
	}
	for _, d := range devices {
		if !strings.Contains(d.Hostname, "-etcd-") {
			continue
		}
		if out, err := m.Exec(ctx, d.ID, http.NoBody, "bash", "-c", "rm -rf /var/lib/etcd/member && pkill -KILL -x etcd"); err != nil {
			return fmt.Errorf("deleting the data of member %q: %w: %s", d.Hostname, err, out)
		}
	}
	return nil
}
