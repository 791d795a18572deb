// Command cni is the agent of Drover's network for Pods, one on each node.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/cni"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cni:", err)
		os.Exit(1)
	}
}

// run takes all it needs from the DaemonSet of charts/cni.
func run(ctx context.Context) error {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("reading the service account: %w", err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	agent := &cni.Agent{
		Node:    os.Getenv("NODE_NAME"),
		ConfDir: "/etc/cni/net.d",
		Client:  client,
		Log:     slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	if agent.Node == "" {
		return fmt.Errorf("NODE_NAME is empty: it must name the node this runs on")
	}
	return agent.Run(ctx)
}
