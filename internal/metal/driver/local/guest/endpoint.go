package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-dev/drover/internal/kube/endpoint"
)

const (
	// endpointFile contains the address that the machine moves together with others. Without it,
	// the unit drover-endpoint does not start.
	endpointFile = "/run/drover/endpoint"
	// founderFile exists while kubeadm initializes a cluster on this machine.
	founderFile = "/run/drover/endpoint-founder"
	adminConfig = "/etc/kubernetes/admin.conf"
	// agentGC makes the agent collect garbage often.
	agentGC = 25
)

// writeEndpoint lets the agent of the endpoint start.
func writeEndpoint(s Spec) error {
	if !s.Endpoint.IsValid() {
		return nil
	}
	return os.WriteFile(endpointFile, []byte(s.Endpoint.String()+"\n"), 0o600)
}

// markFounder makes the agent take the endpoint for kubeadm, which needs it before there is an API
// server with a Lease.
func markFounder(args []string) error {
	if !founds(args) {
		return nil
	}
	if _, err := os.Stat(endpointFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.WriteFile(founderFile, nil, 0o600)
}

// founds reports whether kubeadm initializes a cluster.
func founds(args []string) bool {
	return verb(args) == "init" && !slices.ContainsFunc(args, func(a string) bool {
		return a == "phase" || strings.HasPrefix(a, "--dry-run")
	})
}

// endpointAgent is the program of the unit drover-endpoint.
func endpointAgent([]string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// The rest of Drover allocated memory at start, and this process allocates little.
	debug.FreeOSMemory()
	debug.SetGCPercent(agentGC)
	if err := runEndpointAgent(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "moving the endpoint:", err)
		return codeFailed
	}
	return 0
}

func runEndpointAgent(ctx context.Context) error {
	text, err := os.ReadFile(endpointFile)
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("reading %q: %w", endpointFile, err)
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	return endpoint.Run(ctx, endpoint.Options{
		Name: strings.ToLower(name), Address: address, Link: LinkName, Kubeconfig: adminConfig, Founder: founderFile,
		Log: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
}
