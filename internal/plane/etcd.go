package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

// etcdQuota is far above what a fleet of thousands of clusters needs, and far below what would fill
// a disk unnoticed.
const etcdQuota = 4 << 30

func (p *Plane) etcd() Component {
	return Component{
		Name: "etcd",
		Command: func() *exec.Cmd {
			if err := p.home.clearUnserved(); err != nil {
				p.log.Error("Failed to remove an incomplete etcd directory", "error", err)
			}
			return p.program("etcd", p.etcdArgs()...)
		},
		Probe: func(ctx context.Context) error {
			return p.probes.get(ctx, loopbackURL(p.config.Ports.EtcdClient)+"/readyz")
		},
		AskVersion: func(ctx context.Context) (string, error) {
			var v struct{ Etcdserver string }
			err := p.probes.getJSON(ctx, loopbackURL(p.config.Ports.EtcdClient)+"/version", &v)
			return "v" + v.Etcdserver, err
		},
	}
}

// etcdArgs leave fsync on, which etcd does by default and which is why an acknowledged write
// survives SIGKILL.
func (p *Plane) etcdArgs() []string {
	client, peer := loopbackURL(p.config.Ports.EtcdClient), loopbackURL(p.config.Ports.EtcdPeer)
	cert, key, ca := p.home.certFile("etcd"), p.home.keyFile("etcd"), p.home.certFile("etcd-ca")
	return []string{
		"--name=drover",
		"--data-dir=" + p.home.etcdDir(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=drover=" + peer,
		"--client-cert-auth", "--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca,
		"--peer-client-cert-auth", "--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca,
		fmt.Sprintf("--quota-backend-bytes=%d", int64(etcdQuota)),
		"--snapshot-count=10000",
		"--log-level=warn",
	}
}

// unservedFile exists from before etcd's first start until it serves. An etcd that was killed in
// between may have written its log but not its membership, and would wait for other members
// forever.
func (h Home) unservedFile() string { return h.path("etcd-unborn") }

func (h Home) etcdMember() string { return filepath.Join(h.etcdDir(), "member") }

// clearUnserved removes the data of an etcd that never served, and marks one that has not started
// yet. No write to it was acknowledged.
func (h Home) clearUnserved() error {
	_, err := os.Stat(h.unservedFile())
	if err == nil {
		return os.RemoveAll(h.etcdMember())
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(h.etcdMember()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Write(h.unservedFile(), nil, 0o600)
}

// markServed marks the data as permanent.
func (h Home) markServed() error {
	if err := os.Remove(h.unservedFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording that etcd started: %w", err)
	}
	return atomicfile.SyncDir(h.Dir)
}

func (h Home) etcdClient(c Config) (*clientv3.Client, error) {
	tls, err := transport.TLSInfo{
		CertFile:      h.certFile("etcd-client"),
		KeyFile:       h.keyFile("etcd-client"),
		TrustedCAFile: h.certFile("etcd-ca"),
	}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the client certificate of etcd: %w", err)
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{loopbackURL(c.Ports.EtcdClient)},
		TLS:         tls,
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(),
	})
}

func loopbackURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
