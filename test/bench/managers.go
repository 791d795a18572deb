package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/util/cert"
)

const capiModule = "sigs.k8s.io/cluster-api"

// upstream are the three programs that our manager replaces, each a main package of the same
// module.
var upstream = []string{"core", "bootstrap/kubeadm", "controlplane/kubeadm"}

// benchClusters is the number of clusters that fill the caches.
const benchClusters = 20

// measureManagers runs upstream's managers beside ours, on the same API server with the same
// objects, and compares their memory.
func measureManagers(ctx context.Context, b *bench) error {
	if err := b.up(ctx); err != nil {
		return err
	}
	if err := b.makeClusters(ctx); err != nil {
		return err
	}
	certs, err := b.webhookCerts()
	if err != nil {
		return err
	}
	var running []*exec.Cmd
	defer func() {
		for _, cmd := range running {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	}()
	for _, name := range upstream {
		cmd, err := b.startUpstream(ctx, name, certs)
		if err != nil {
			return err
		}
		running = append(running, cmd)
	}
	if err := wait(ctx, settle); err != nil {
		return err
	}
	return b.compare(ctx, running)
}

func (b *bench) compare(ctx context.Context, running []*exec.Cmd) error {
	s, err := b.status(ctx)
	if err != nil {
		return err
	}
	ours, err := usageOf(s.processes()["manager"])
	if err != nil {
		return err
	}
	var theirs usage
	for i, cmd := range running {
		u, err := usageOf(cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("%s ended: see %s", upstream[i], cmd.Path+".log")
		}
		row("upstream "+upstream[i], "%4d MiB", u.resident>>20)
		theirs.resident += u.resident
		theirs.proportional += u.proportional
	}
	row("upstream, three managers", "%4d MiB", theirs.resident>>20)
	row("drover, one manager", "%4d MiB", ours.resident>>20)
	row("ratio", "%.2f (%.2f with shared pages counted once)",
		float64(ours.resident)/float64(theirs.resident), float64(ours.proportional)/float64(theirs.proportional))
	return nil
}

// makeClusters applies the example cluster under many names.
func (b *bench) makeClusters(ctx context.Context) error {
	example, err := os.ReadFile("docs/examples/first-cluster.yaml")
	if err != nil {
		return err
	}
	var all strings.Builder
	for i := range benchClusters {
		fmt.Fprintf(&all, "%s\n---\n", strings.ReplaceAll(string(example), "first", fmt.Sprintf("bench-%d", i)))
	}
	path := filepath.Join(b.work, "clusters.yaml")
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		return err
	}
	_, err = b.run(ctx, "kubectl", "apply", "-f", path)
	return err
}

// webhookCerts creates the certificates that upstream expects from cert-manager.
func (b *bench) webhookCerts() (string, error) {
	dir := filepath.Join(b.work, "certs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)
}

// startUpstream builds and starts one manager and returns when it is ready.
func (b *bench) startUpstream(ctx context.Context, name, certs string) (*exec.Cmd, error) {
	binary := filepath.Join(b.work, strings.ReplaceAll(name, "/", "-"))
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", binary, capiModule+"/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building upstream's %s: %w:\n%s", name, err, out)
	}
	log, err := os.Create(binary + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	health, webhook, metrics := freePort(), freePort(), freePort()
	cmd := exec.CommandContext(ctx, binary,
		"--kubeconfig="+filepath.Join(b.home, "kubeconfig"), "--leader-elect=false", "--feature-gates=ClusterTopology=true",
		"--webhook-cert-dir="+certs, fmt.Sprintf("--webhook-port=%d", webhook),
		fmt.Sprintf("--health-addr=127.0.0.1:%d", health), fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", metrics), "--insecure-diagnostics")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, awaitHealthy(ctx, name, fmt.Sprintf("http://127.0.0.1:%d/readyz", health))
}

func awaitHealthy(ctx context.Context, name, url string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("upstream's %s did not become ready in a minute", name)
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
