package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// stage is a step toward a working cluster.
type stage struct {
	name string
	done func(context.Context, *clustertest.Cluster) bool
}

func localStages() []stage {
	return []stage{
		{"endpoint address reserved", func(ctx context.Context, c *clustertest.Cluster) bool {
			return c.Is(ctx, clusterv1.ClusterInfrastructureReadyCondition)
		}},
		{"control plane machine up", func(ctx context.Context, c *clustertest.Cluster) bool { return machinesUp(ctx, c) > 0 }},
		{"control plane initialized", func(ctx context.Context, c *clustertest.Cluster) bool {
			return c.Is(ctx, clusterv1.ClusterControlPlaneInitializedCondition) && createPod(ctx, c) == nil
		}},
		{"worker machine up", func(ctx context.Context, c *clustertest.Cluster) bool { return machinesUp(ctx, c) > 1 }},
		{"both nodes Ready", func(ctx context.Context, c *clustertest.Cluster) bool {
			nodes := c.Nodes(ctx)
			return len(nodes) == 2 && !slices.ContainsFunc(nodes, clustertest.NotReady)
		}},
		{"first pod Ready", podReady},
		{"cluster Available", func(ctx context.Context, c *clustertest.Cluster) bool { return c.Available(ctx) }},
	}
}

func machinesUp(ctx context.Context, c *clustertest.Cluster) int {
	n := 0
	for _, m := range c.Machines(ctx) {
		if m.Spec.ProviderID != "" {
			n++
		}
	}
	return n
}

// createPod creates the first pod as soon as the cluster accepts it; it waits for the worker.
func createPod(ctx context.Context, c *clustertest.Cluster) error {
	direct, err := c.Direct(ctx)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "first", Image: node.ToolsImage, Command: []string{"sleep", "infinity"}}}},
	}
	_, err = direct.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func podReady(ctx context.Context, c *clustertest.Cluster) bool {
	direct, err := c.Direct(ctx)
	if err != nil {
		return false
	}
	pod, err := direct.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "first", metav1.GetOptions{})
	return err == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// measureLocal creates a cluster of two machines on this host, and reports the duration of each
// stage and the cost of a machine.
func measureLocal(ctx context.Context, b *bench) error {
	c, began, err := b.localCluster(ctx, "bench", 1, 1)
	if err != nil {
		return err
	}
	last := began
	for _, s := range localStages() {
		if err := await(ctx, s.name, func() bool { return s.done(ctx, c) }); err != nil {
			return err
		}
		now := time.Now()
		row(s.name, "%5.1f s  (+%.1f)", now.Sub(began).Seconds(), now.Sub(last).Seconds())
		last = now
	}
	if err := b.machineCosts(ctx, c); err != nil {
		return err
	}
	began = time.Now()
	if _, err := b.run(ctx, "kubectl", "delete", "clusters.cluster.x-k8s.io", c.Name, "--timeout=5m"); err != nil {
		return err
	}
	row("everything deleted", "%5.1f s", time.Since(began).Seconds())
	return nil
}

// requireRoot returns an error unless local machines can be created.
func requireRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("local machines need root")
	}
	return nil
}

// localCluster starts a plane with local machines, and applies a cluster.
func (b *bench) localCluster(ctx context.Context, name string, controlPlanes, workers int) (*clustertest.Cluster, time.Time, error) {
	if err := requireRoot(); err != nil {
		return nil, time.Time{}, err
	}
	if _, err := b.run(ctx, "up", "--metal", "local"); err != nil {
		return nil, time.Time{}, err
	}
	project, err := b.project(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	manifest, err := clustertest.Render("templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": name, "PROJECT_ID": project, "KUBERNETES_VERSION": kubernetes(),
		"CONTROL_PLANE_MACHINE_COUNT": strconv.Itoa(controlPlanes), "WORKER_MACHINE_COUNT": strconv.Itoa(workers),
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	file := filepath.Join(b.work, name+".yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		return nil, time.Time{}, err
	}
	if _, err := b.run(ctx, "kubectl", "apply", "-f", "templates/cni.yaml"); err != nil {
		return nil, time.Time{}, err
	}
	cl, err := b.client()
	if err != nil {
		return nil, time.Time{}, err
	}
	began := time.Now()
	_, err = b.run(ctx, "kubectl", "apply", "-f", file)
	return &clustertest.Cluster{Client: cl, Name: name}, began, err
}

// machineCosts reports the memory of machines, with shared pages counted once, and their disk usage
// beyond the shared image.
func (b *bench) machineCosts(ctx context.Context, c *clustertest.Cluster) error {
	for i, m := range c.Machines(ctx) {
		id := strings.TrimPrefix(m.Spec.ProviderID, "equinixmetal://")
		used, err := groupUsage(id)
		if err != nil {
			return err
		}
		dir := filepath.Join(b.metalHome(), "driver-local", "machines", id)
		role := "worker"
		if i == 0 {
			role = "control plane"
		}
		row("memory and disk of the "+role+" machine", "%d MiB, %d MiB", used.proportional>>20, diskUsage(dir)>>20)
	}
	return nil
}

// groupUsage adds up the memory and CPU time of the processes of a control group.
func groupUsage(group string) (sum usage, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return sum, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), group) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return sum, fmt.Errorf("reading %s: %w", file, err)
		}
		if u, err := usageOf(pid); err == nil {
			sum.proportional, sum.cpu = sum.proportional+u.proportional, sum.cpu+u.cpu
		}
	}
	return sum, nil
}

// diskUsage counts blocks of one file system, without mounts below it and hard links to the image.
func diskUsage(dir string) int64 {
	var sum int64
	var root syscall.Stat_t
	if syscall.Stat(dir, &root) != nil {
		return 0
	}
	// Files change while a machine runs: unreadable ones are skipped.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		var st syscall.Stat_t
		if syscall.Lstat(path, &st) == nil && st.Dev == root.Dev {
			if d.IsDir() || st.Nlink == 1 {
				sum += st.Blocks * 512
			}
			return nil
		}
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return sum
}
