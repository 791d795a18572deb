// Command cni is the agent of Drover's Pod network. One runs on each node.
//
//	cni          configure the network of the node, and keep it so
//	cni clean    remove that configuration
//	cni wait     do nothing until a signal arrives
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/kube/cni"
)

// confDir is where the DaemonSet of charts/cni mounts the node's directory.
const confDir = "/etc/cni/net.d"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cni:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return keep(ctx)
	case slices.Equal(args, []string{"clean"}):
		return cni.Clean(ctx, confDir)
	case slices.Equal(args, []string{"wait"}):
		<-ctx.Done()
		return nil
	}
	return fmt.Errorf("unknown arguments %q: use none, clean or wait", args)
}

// keep takes its settings from the DaemonSet.
func keep(ctx context.Context) error {
	name := os.Getenv("NODE_NAME")
	if name == "" {
		return errors.New("NODE_NAME is empty: set it to the name of the node")
	}
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("reading the service account: %w", err)
	}
	nodes, err := cni.Nodes(cfg)
	if err != nil {
		return err
	}
	agent := &cni.Agent{Node: name, ConfDir: confDir, Nodes: nodes, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	return agent.Run(ctx)
}
