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

// metalHome is where metal keeps what it has to know, apart from the plane.
func (b *bench) metalHome() string { return b.home + "-metal" }

// project is the one that metal makes by itself.
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
		return "", fmt.Errorf("metal has no project")
	}
	return projects[0].ID, nil
}

// client talks to the plane.
func (b *bench) client() (client.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.home, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return clustertest.NewClient(cfg)
}

// kubernetes is the version that clusters are made with.
func kubernetes() string { return version.Get().Kubernetes }

// await asks until the answer is yes.
func await(ctx context.Context, what string, done func() bool) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if done() {
			return nil
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("waited %s in vain for: %s", patience, what)
}

const patience = 15 * time.Minute
