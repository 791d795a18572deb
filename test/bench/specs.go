package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/capi"
	"github.com/drover-dev/drover/internal/clusters/build"
	"github.com/drover-dev/drover/internal/clusters/spec"
	"github.com/drover-dev/drover/internal/version"
)

// specText is a workload cluster of one control plane and some workers.
const specText = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: NAME, namespace: default}
spec: {}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: NAME, namespace: default}
spec:
  kubernetesVersion: "MINOR"
  OWNER
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [WORKERS]
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
  datacenterRef: {kind: DockerDatacenterConfig, name: NAME}
`

// specOf is such a spec. The owner says whether it is of management, and whose.
func specOf(name, owner string, workers int) string {
	group := ""
	if workers > 0 {
		group = fmt.Sprintf("{name: md-0, count: %d}", workers)
	}
	minor := strings.Join(strings.Split(strings.TrimPrefix(kubernetes(), "v"), ".")[:2], ".")
	return strings.NewReplacer("NAME", name, "MINOR", minor, "OWNER", owner, "WORKERS", group).Replace(specText)
}

// measureSpecs makes as many clusters at once out of the objects that specs become and out of specs, each on a plane of its own: the
// difference is the controller's.
func measureSpecs(ctx context.Context, b *bench) error {
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	plain, err := b.runSpecs(ctx, "plain", (*bench).makePlain)
	if err != nil {
		return fmt.Errorf("out of plain objects: %w", err)
	}
	plain.print()
	specs, err := b.runSpecs(ctx, "specs", (*bench).makeSpecs)
	if err != nil {
		return fmt.Errorf("out of specs: %w", err)
	}
	specs.print()
	row("specs beside plain objects", "%.2f times as long, %.2f times the CPU; %d KiB more of the manager's memory for each cluster",
		specs.ready.Seconds()/plain.ready.Seconds(), specs.used().Seconds()/plain.used().Seconds(), (specs.grown()-plain.grown())/int64(b.specs)>>10)
	return nil
}

// runSpecs makes clusters on a plane of their own, and says what they took.
func (b *bench) runSpecs(ctx context.Context, name string, begin func(*bench, context.Context) (*counter, error)) (fleetRun, error) {
	f := &bench{drover: b.drover, work: b.work, specs: b.specs, home: filepath.Join(b.work, name)}
	r := fleetRun{clusters: b.specs}
	stop, err := f.startMetal(ctx)
	if err != nil {
		return r, err
	}
	defer func() {
		f.remove(context.WithoutCancel(ctx))
		stop()
	}()
	if _, err := f.run(ctx, "up", "--metal", "memory"); err != nil {
		return r, err
	}
	if err := wait(ctx, settle); err != nil {
		return r, err
	}
	if r.empty, err = f.usages(ctx); err != nil {
		return r, err
	}
	began := time.Now()
	counter, err := begin(f, ctx)
	if err != nil {
		return r, err
	}
	defer counter.stop()
	if err := counter.await(ctx, b.specs); err != nil {
		return r, err
	}
	r.ready = time.Since(began)
	if r.made, err = f.usages(ctx); err != nil {
		return r, err
	}
	if err := wait(ctx, fleetSettle); err != nil {
		return r, err
	}
	r.settled, err = f.usages(ctx)
	return r, err
}

// makePlain makes clusters of the objects that specs become, as somebody would who writes those by hand.
func (b *bench) makePlain(ctx context.Context) (*counter, error) {
	registry, err := b.charts(ctx)
	if err != nil {
		return nil, err
	}
	network, err := charts.Version("cni")
	if err != nil {
		return nil, err
	}
	project, err := b.project(ctx)
	if err != nil {
		return nil, err
	}
	c, err := b.countClusters(ctx)
	if err != nil {
		return nil, err
	}
	return c, b.createEach(ctx, func(name string) ([]client.Object, error) {
		config, err := spec.Read([]byte(specOf(name, "management: false", 2)))
		if err != nil {
			return nil, err
		}
		spec.Default(config)
		set, err := build.Objects(build.Input{Config: config, Version: version.ForMinor, Project: project, Charts: registry, CNIVersion: network})
		if err != nil {
			return nil, err
		}
		return set.All(), nil
	})
}

// makeSpecs makes clusters out of specs.
func (b *bench) makeSpecs(ctx context.Context) (*counter, error) {
	c, err := b.count(ctx, &anywherev1.Cluster{}, anywherev1.Ready)
	if err != nil {
		return nil, err
	}
	return c, b.createEach(ctx, func(name string) ([]client.Object, error) {
		config, err := spec.Read([]byte(specOf(name, "management: false", 2)))
		if err != nil {
			return nil, err
		}
		return config.Objects(), nil
	})
}

// createEach creates the objects of each cluster, some clusters at a time.
func (b *bench) createEach(ctx context.Context, objects func(name string) ([]client.Object, error)) error {
	cl, err := b.client()
	if err != nil {
		return err
	}
	for _, add := range []func(*runtime.Scheme) error{capi.AddToScheme, anywherev1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(cl.Scheme()); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fleetWriters)
	for i := range b.specs {
		group.Go(func() error {
			all, err := objects(fmt.Sprintf("c%03d", i))
			if err != nil {
				return err
			}
			for _, o := range all {
				if err := cl.Create(ctx, o); err != nil {
					return fmt.Errorf("creating %T %q: %w", o, o.GetName(), err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}
