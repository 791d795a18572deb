package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/spec"
)

// specText is a workload cluster of one control plane machine and some workers.
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

// specOf returns such a spec. The owner determines its role and its management cluster.
func specOf(name, owner string, workers int) string {
	group := ""
	if workers > 0 {
		group = fmt.Sprintf("{name: md-0, count: %d}", workers)
	}
	minor := strings.Join(strings.Split(strings.TrimPrefix(kubernetes(), "v"), ".")[:2], ".")
	return strings.NewReplacer("NAME", name, "MINOR", minor, "OWNER", owner, "WORKERS", group).Replace(specText)
}

// measureSpecs creates the same number of clusters from plain objects and from specs, each on its
// own plane: the difference is the cost of the controller.
func measureSpecs(ctx context.Context, b *bench) error {
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	plain, err := b.runSpecs(ctx, "plain", (*bench).countClusters, (*bench).createPlain)
	if err != nil {
		return fmt.Errorf("creating clusters from plain objects: %w", err)
	}
	plain.print()
	specs, err := b.runSpecs(ctx, "specs", (*bench).countSpecs, (*bench).createSpecs)
	if err != nil {
		return fmt.Errorf("creating clusters from specs: %w", err)
	}
	specs.print()
	row("specs compared with plain objects", "%.2f times as long, %.2f times the CPU; the manager takes %d KiB per cluster, %d without specs",
		specs.ready.Seconds()/plain.ready.Seconds(), specs.used().Seconds()/plain.used().Seconds(), specs.ofManager()>>10, plain.ofManager()>>10)
	return nil
}

// runSpecs creates clusters on their own plane, and returns the cost.
func (b *bench) runSpecs(ctx context.Context, name string, follow func(*bench, context.Context) (*counter, error), create func(*bench, context.Context) error) (fleetRun, error) {
	f := &bench{drover: b.drover, work: b.work, specs: b.specs, home: filepath.Join(b.work, name)}
	r := fleetRun{clusters: b.specs}
	err := f.onOwnPlane(ctx, &r, func() error {
		return f.fill(ctx, &r, func(ctx context.Context) (*counter, error) { return follow(f, ctx) }, func(ctx context.Context) error { return create(f, ctx) })
	})
	return r, err
}

// createPlain creates the objects that specs become, as if written by hand.
func (b *bench) createPlain(ctx context.Context) error {
	registry, err := b.charts(ctx)
	if err != nil {
		return err
	}
	network, err := charts.Version("cni")
	if err != nil {
		return err
	}
	project, err := b.project(ctx)
	if err != nil {
		return err
	}
	return b.createEach(ctx, func(config *spec.Config) ([]client.Object, error) {
		spec.Default(config)
		set, err := build.Objects(build.Input{Config: config, Version: version.ForMinor, Project: project, Charts: registry, CNIVersion: network})
		if err != nil {
			return nil, err
		}
		return set.All(), nil
	})
}

// countSpecs starts to watch the Clusters of specs.
func (b *bench) countSpecs(ctx context.Context) (*counter, error) {
	return b.count(ctx, &anywherev1.Cluster{}, anywherev1.Ready)
}

func (b *bench) createSpecs(ctx context.Context) error {
	return b.createEach(ctx, func(config *spec.Config) ([]client.Object, error) { return config.Objects(), nil })
}

// createEach creates the objects of a spec for each cluster, several clusters at a time.
func (b *bench) createEach(ctx context.Context, objects func(*spec.Config) ([]client.Object, error)) error {
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
			config, err := spec.Read([]byte(specOf(fmt.Sprintf("c%03d", i), "management: false", 2)))
			if err != nil {
				return err
			}
			all, err := objects(config)
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
