package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

// bundleRepository separates the benchmark's bundles from those that ship with Drover.
const bundleRepository = "bench-bundles"

// packageChart contains nothing that must become ready, as a bare API server runs no Pods, and no
// Service with an address, as a server has too few for so many clusters. Jobs don't run either, so
// that the hook of a stalled package never ends.
var packageChart = map[string]string{
	"values.yaml": "stall: false\n",
	"templates/all.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {version: {{ .Chart.Version | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {clusterIP: None, selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
`,
	"templates/hook.yaml": `{{ if .Values.stall }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  annotations: {"helm.sh/hook": post-upgrade, "helm.sh/hook-delete-policy": before-hook-creation}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: bench}]}
{{ end }}
`,
}

func packageName(i int) string { return fmt.Sprintf("bench-%02d", i) }

func bundleName(build int) string {
	return fmt.Sprintf("v%s-%d", strings.ReplaceAll(minorVersion(), ".", "-"), build)
}

// minorVersion is the Kubernetes minor version of all API servers.
func minorVersion() string {
	parts := strings.SplitN(strings.TrimPrefix(kubernetes(), "v"), ".", 3)
	return strings.Join(parts[:2], ".")
}

// publish pushes all builds of the bundle to the plane's registry.
func (w *packageWorld) publish(ctx context.Context) error {
	home := plane.Home{Dir: w.bench.home}
	key, err := pki.LoadKey(home.BundleKey())
	if err != nil {
		return err
	}
	to, err := openRegistry(home)
	if err != nil {
		return err
	}
	for build := firstBuild; build <= thirdBuild; build++ {
		built, err := w.build(build)
		if err != nil {
			return err
		}
		if err := bundle.Sign(built.Bundle, key); err != nil {
			return err
		}
		if _, err := transfer.Publish(ctx, to, transfer.Publication{Bundle: built.Bundle, Charts: built.Charts, Repository: bundleRepository}); err != nil {
			return err
		}
	}
	return nil
}

func openRegistry(home plane.Home) (*transfer.Registry, error) {
	r, err := plane.ReadRegistry(home)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(r.CAFile)
	if err != nil {
		return nil, err
	}
	password, err := os.ReadFile(r.PasswordFile)
	if err != nil {
		return nil, err
	}
	return transfer.Open(transfer.Options{
		Address: strings.TrimPrefix(r.URL, "https://"), CA: ca, Username: registry.User, Password: strings.TrimSpace(string(password)),
	})
}

// build writes the charts of a build and packs them.
func (w *packageWorld) build(build int) (*pack.Built, error) {
	dir := filepath.Join(w.bench.work, bundleName(build))
	for i := range w.herd.packages {
		files := map[string]string{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 1.0.%d\n", packageName(i), build)}
		for name, text := range packageChart {
			files[name] = text
		}
		for name, text := range files {
			file := filepath.Join(dir, packageName(i), name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return nil, err
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
	}
	d, err := pack.FromDirectory(dir)
	if err != nil {
		return nil, err
	}
	d.KubeVersion, d.Build = minorVersion(), build
	return pack.Build(d)
}
