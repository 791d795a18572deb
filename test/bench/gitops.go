package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const (
	gitOpsPath = "clusters/bench"
	// gitOpsSettle is how long what follows from a commit may take to be written.
	gitOpsSettle = 20 * time.Second
)

// gitOps is a plane with Flux and simulated machines, and the repository of its clusters.
type gitOps struct {
	*bench

	repository *repository
	journal    *journal
}

// measureGitOps puts a fleet into a repository, and measures what a commit costs: one that changes
// no cluster, one that changes one, and one that adds one.
func measureGitOps(ctx context.Context, b *bench) error {
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	f := &bench{drover: b.drover, work: b.work, idle: b.idle, specs: b.specs, home: filepath.Join(b.work, "gitops")}
	stop, err := f.startMetal(ctx)
	if err != nil {
		return err
	}
	defer func() {
		f.remove(context.WithoutCancel(ctx))
		stop()
	}()
	if _, err := f.run(ctx, "up", "--gitops", "--metal", "memory"); err != nil {
		return err
	}
	served, err := serveRepository(filepath.Join(b.work, "git"))
	if err != nil {
		return err
	}
	defer served.stop()
	g := &gitOps{bench: f, repository: served}
	return g.measure(ctx)
}

func (g *gitOps) measure(ctx context.Context) error {
	if err := g.connect(ctx); err != nil {
		return err
	}
	var err error
	if g.journal, err = g.follow(ctx); err != nil {
		return err
	}
	defer g.journal.stop()
	for _, step := range []func(context.Context) error{g.create, g.watchIdle, g.changeNone, g.changeOne, g.addOne} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect opens the repository, and simulated machines, to the default namespace.
func (g *gitOps) connect(ctx context.Context) error {
	if err := g.repository.push(map[string]string{"README.md": "The fleet\n"}); err != nil {
		return err
	}
	file := filepath.Join(g.work, "connection.yaml")
	if err := writeFile(file, g.repository.manifests()); err != nil {
		return err
	}
	if _, err := g.run(ctx, "kubectl", "apply", "-f", file); err != nil {
		return err
	}
	_, err := g.run(ctx, "kubectl", "annotate", "--overwrite", "secret", anywherev1.LocalCredentials, "--namespace="+anywherev1.SystemNamespace,
		anywherev1.CredentialsNamespacesAnnotation+"=default")
	return err
}

func gitOpsFile(name string) string {
	return gitOpsPath + "/workload-clusters/" + name + "/eksa-cluster.yaml"
}

func gitOpsSpec(name string, workers int) string { return specOf(name, "management: false", workers) }

// create commits all clusters at once, and waits until they are ready.
func (g *gitOps) create(ctx context.Context) error {
	files := map[string]string{}
	for i := range g.specs {
		name := fmt.Sprintf("c%03d", i)
		files[gitOpsFile(name)] = gitOpsSpec(name, 1)
	}
	counter, err := g.countSpecs(ctx)
	if err != nil {
		return err
	}
	defer counter.stop()
	began := time.Now()
	if err := g.pushAndFetch(ctx, files); err != nil {
		return err
	}
	if err := counter.await(ctx, g.specs); err != nil {
		return err
	}
	row(fmt.Sprintf("%d clusters in one commit until all are ready", g.specs), "%.1f s", time.Since(began).Seconds())
	return wait(ctx, fleetSettle)
}

// watchIdle measures the fleet while nobody commits.
func (g *gitOps) watchIdle(ctx context.Context) error {
	return g.observe(ctx, "idle for "+g.idle.String(), func() error { return wait(ctx, g.idle) })
}

// changeNone commits a file that belongs to no cluster.
func (g *gitOps) changeNone(ctx context.Context) error {
	return g.observe(ctx, "commit that changes no cluster", func() error {
		return g.commit(ctx, map[string]string{"README.md": "The fleet, again\n"})
	})
}

func (g *gitOps) changeOne(ctx context.Context) error {
	return g.observe(ctx, "commit that changes one cluster", func() error {
		return g.commit(ctx, map[string]string{gitOpsFile("c000"): gitOpsSpec("c000", 2)})
	})
}

// commit pushes files and waits until everything that follows was written.
func (g *gitOps) commit(ctx context.Context, files map[string]string) error {
	began := time.Now()
	if err := g.pushAndFetch(ctx, files); err != nil {
		return err
	}
	if err := g.journal.await(ctx, "the commit is applied", g.isApplied); err != nil {
		return err
	}
	row("push until all clusters have the commit", "%.2f s", time.Since(began).Seconds())
	return wait(ctx, gitOpsSettle)
}

// isApplied reports whether an object is the FluxConfig, and has applied the newest commit.
func (g *gitOps) isApplied(o *unstructured.Unstructured) bool {
	revision, _, _ := unstructured.NestedString(o.Object, "status", "revision")
	return o.GetKind() == anywherev1.FluxConfigKind && strings.HasSuffix(revision, g.repository.tip) && conditionOf(o, anywherev1.ClustersApplied) == "True"
}

// addOne measures the time from when Flux has the commit until the first machine is ordered.
func (g *gitOps) addOne(ctx context.Context) error {
	if err := g.pushAndFetch(ctx, map[string]string{gitOpsFile("added"): gitOpsSpec("added", 1)}); err != nil {
		return err
	}
	err := g.journal.await(ctx, "Flux has the commit", func(o *unstructured.Unstructured) bool {
		revision, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "revision")
		return o.GetKind() == "GitRepository" && strings.HasSuffix(revision, g.repository.tip)
	})
	if err != nil {
		return err
	}
	seen := time.Now()
	err = g.journal.await(ctx, "a machine is ordered", func(o *unstructured.Unstructured) bool {
		id, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
		return o.GetKind() == "PacketMachine" && strings.HasPrefix(o.GetName(), "added-") && id != ""
	})
	if err != nil {
		return err
	}
	row("new cluster, Flux has the commit until a machine is ordered", "%.2f s", time.Since(seen).Seconds())
	return nil
}

// pushAndFetch pushes files and asks Flux to fetch them.
func (g *gitOps) pushAndFetch(ctx context.Context, files map[string]string) error {
	if err := g.repository.push(files); err != nil {
		return err
	}
	_, err := g.run(ctx, "kubectl", "annotate", "--overwrite", "gitrepository", anywherev1.GitCredentials, "--namespace=flux-system",
		"reconcile.fluxcd.io/requestedAt="+g.repository.tip)
	return err
}

// observe prints the CPU time of each process, and the objects that were written.
func (g *gitOps) observe(ctx context.Context, what string, run func() error) error {
	before, err := g.usages(ctx)
	if err != nil {
		return err
	}
	g.journal.reset()
	if err := run(); err != nil {
		return err
	}
	after, err := g.usages(ctx)
	if err != nil {
		return err
	}
	var total time.Duration
	var each []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		used := after[name].cpu - before[name].cpu
		total += used
		each = append(each, fmt.Sprintf("%s %.2f", name, used.Seconds()))
	}
	row(what+", CPU seconds", "%.2f (%s)", total.Seconds(), strings.Join(each, ", "))
	row(what+", objects written", "%s", g.journal.counts())
	return nil
}

func conditionOf(o *unstructured.Unstructured, kind string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
