package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// metalHome is the home of the metal service, separate from the plane.
func (b *bench) metalHome() string { return b.home + "-metal" }

// project returns the default project.
func (b *bench) project(ctx context.Context) (string, error) {
	out, err := b.run(ctx, "metal", "project", "list", "-o", "json")
	if err != nil {
		return "", err
	}
	var projects []struct{ ID string }
	if err := json.Unmarshal([]byte(out), &projects); err != nil {
		return "", err
	}
	if len(projects) == 0 {
		return "", fmt.Errorf("the metal service has no project")
	}
	return projects[0].ID, nil
}

// client returns a client for the plane.
func (b *bench) client() (client.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.home, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return clustertest.NewClient(cfg)
}

// kubernetes is the version of the created clusters.
func kubernetes() string { return version.Get().Kubernetes }

// await polls until the condition is true.
func await(ctx context.Context, what string, done func() bool) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if done() {
			return nil
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("timed out after %s waiting for: %s", patience, what)
}

const patience = 15 * time.Minute
