package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// measureClusters creates a management cluster of one machine by command, and on it workload
// clusters of two machines, one after the other: by command, and from plain Cluster API objects.
func measureClusters(ctx context.Context, b *bench) error {
	if err := requireRoot(); err != nil {
		return err
	}
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	f := &bench{drover: b.drover, work: b.work, home: filepath.Join(b.work, "clusters")}
	defer f.remove(context.WithoutCancel(ctx))
	defer f.removeBootstrap(context.WithoutCancel(ctx))
	c := &commands{bench: f, dir: filepath.Join(b.work, "story")}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{c.makeManagement, c.makeWorkloads, c.changeNothing, c.deleteAll} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// removeBootstrap removes the bootstrap plane of an interrupted creation.
func (b *bench) removeBootstrap(ctx context.Context) {
	left, _ := filepath.Glob(filepath.Join(b.home+"-bootstrap", "*"))
	for _, home := range left {
		if out, err := b.run(ctx, "down", "--purge", "--home", home); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err, out)
		}
	}
}

// commands runs commands in its own directory.
type commands struct {
	*bench

	dir string
}

func (c *commands) file(name string) string { return filepath.Join(c.dir, name) }

func (c *commands) kubeconfig() string { return c.file("mgmt/mgmt-eks-a-cluster.kubeconfig") }

// here runs a command in the directory and returns its duration.
func (c *commands) here(ctx context.Context, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, c.drover, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "DROVER_HOME="+c.home, "DROVER_METAL_HOME="+c.metalHome())
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("drover %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(began), nil
}

func (c *commands) makeManagement(ctx context.Context) error {
	if err := os.WriteFile(c.file("mgmt.yaml"), []byte(specOf("mgmt", "managementCluster: {name: mgmt}", 0)), 0o600); err != nil {
		return err
	}
	took, err := c.here(ctx, "create", "cluster", "-f", "mgmt.yaml")
	if err != nil {
		return err
	}
	machine, err := c.machineTime(ctx)
	if err != nil {
		return err
	}
	row("management cluster of one machine", "%.1f s, of which the machine took %.1f s; overhead %.1f s", took.Seconds(), machine.Seconds(), (took - machine).Seconds())
	return nil
}

// machineTime returns the provisioning time of machines, from the order to the end of their
// userdata.
func (c *commands) machineTime(ctx context.Context) (time.Duration, error) {
	m, err := admin.Open(metal.Home{Dir: c.metalHome()})
	if err != nil {
		return 0, err
	}
	devices, err := m.Devices(ctx, nil)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, d := range devices {
		var out api.Events
		if err := m.Do(ctx, http.MethodGet, "/devices/"+d.ID+"/events?per_page=1000", nil, &out); err != nil {
			return 0, err
		}
		sum += span(out.Events)
	}
	return sum, nil
}

func span(events []api.Event) time.Duration {
	var first, done time.Time
	for _, e := range events {
		if first.IsZero() || e.CreatedAt.Before(first) {
			first = e.CreatedAt.Time
		}
		if e.Type == "user-state" && e.CreatedAt.After(done) {
			done = e.CreatedAt.Time
		}
	}
	return done.Sub(first)
}

// makeWorkloads creates a cluster in both ways, and again in reverse order, as the host warms up.
// The last one is kept.
func (c *commands) makeWorkloads(ctx context.Context) error {
	var command, plain time.Duration
	for _, part := range []struct {
		name string
		make func(context.Context, string) (time.Duration, error)
		sum  *time.Duration
		undo []string
	}{
		{"first", c.byCommand, &command, []string{"delete", "cluster", "-f", "first.yaml", "-k", c.kubeconfig(), "--yes"}},
		{"second", c.createFromTemplate, &plain, c.kubectl("delete", "clusters.cluster.x-k8s.io", "second", "--timeout=5m")},
		{"third", c.createFromTemplate, &plain, c.kubectl("delete", "clusters.cluster.x-k8s.io", "third", "--timeout=5m")},
		{"one", c.byCommand, &command, nil},
	} {
		took, err := part.make(ctx, part.name)
		if err != nil {
			return err
		}
		*part.sum += took / 2
		if part.undo == nil {
			continue
		}
		if _, err := c.here(ctx, part.undo...); err != nil {
			return err
		}
	}
	row("workload cluster of two machines, by command", "%.1f s (mean of two)", command.Seconds())
	row("the same from plain Cluster API objects", "%.1f s (mean of two); the command takes %+.1f s", plain.Seconds(), (command - plain).Seconds())
	return nil
}

func (c *commands) byCommand(ctx context.Context, name string) (time.Duration, error) {
	if err := os.WriteFile(c.file(name+".yaml"), []byte(specOf(name, "managementCluster: {name: mgmt}", 1)), 0o600); err != nil {
		return 0, err
	}
	return c.here(ctx, "create", "cluster", "-f", name+".yaml", "-k", c.kubeconfig())
}

// changeNothing upgrades clusters to their current spec.
func (c *commands) changeNothing(ctx context.Context) error {
	took, err := c.here(ctx, "upgrade", "cluster", "-f", "one.yaml", "-k", c.kubeconfig())
	if err != nil {
		return err
	}
	row("upgrade of it without changes", "%.2f s", took.Seconds())
	if took, err = c.here(ctx, "upgrade", "cluster", "-f", "mgmt.yaml"); err != nil {
		return err
	}
	row("upgrade of the management cluster without changes", "%.2f s", took.Seconds())
	return nil
}

func (c *commands) kubectl(args ...string) []string {
	return append([]string{"kubectl", "--kubeconfig", c.kubeconfig()}, args...)
}

// createFromTemplate creates a cluster from the shipped template.
func (c *commands) createFromTemplate(ctx context.Context, name string) (time.Duration, error) {
	project, err := c.project(ctx)
	if err != nil {
		return 0, err
	}
	manifest, err := clustertest.Render("templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": name, "PROJECT_ID": project, "KUBERNETES_VERSION": kubernetes(), "CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1",
	})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(c.file(name+".yaml"), append(manifest, networkText...), 0o600); err != nil {
		return 0, err
	}
	began := time.Now()
	for _, args := range [][]string{
		{"apply", "-f", name + ".yaml"},
		{"wait", "--for=condition=ControlPlaneInitialized", "--timeout=10m", "clusters.cluster.x-k8s.io/" + name},
		{"wait", "--for=condition=Available", "--timeout=10m", "clusters.cluster.x-k8s.io/" + name},
	} {
		if _, err := c.here(ctx, c.kubectl(args...)...); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// networkText returns the network add-on of the cluster, from the manager's registry.
const networkText = `
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: cni}
spec:
  clusterSelector: {matchLabels: {cni: drover}}
  repoURL: oci://127.0.0.1:5000/charts
  chartName: cni
  releaseName: cni
  namespace: kube-system
`

func (c *commands) deleteAll(ctx context.Context) error {
	took, err := c.here(ctx, "delete", "cluster", "-f", "one.yaml", "-k", c.kubeconfig(), "--yes")
	if err != nil {
		return err
	}
	row("workload cluster deleted", "%.1f s", took.Seconds())
	if took, err = c.here(ctx, "delete", "cluster", "-f", "mgmt.yaml", "--yes"); err != nil {
		return err
	}
	row("management cluster deleted", "%.1f s", took.Seconds())
	return nil
}

// charts returns the location of shipped charts in the plane's registry.
func (b *bench) charts(ctx context.Context) (string, error) {
	out, err := b.run(ctx, "registry", "status", "-o", "json")
	if err != nil {
		return "", err
	}
	var status struct{ Charts string }
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return "", fmt.Errorf("reading the status of the registry: %w", err)
	}
	return status.Charts, nil
}
