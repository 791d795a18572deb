package kubetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// run starts etcd and the API server concurrently; the latter waits for the former.
func (s *Server) run(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	token, err := s.writeCredentials()
	if err != nil {
		return err
	}
	s.Etcd = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	if err := s.spawn("etcd", etcdArgs(s.dir, s.Etcd, ports[1])...); err != nil {
		return err
	}
	if err := s.spawn("kube-apiserver", apiserverArgs(s.dir, s.Etcd, ports[2])...); err != nil {
		return err
	}
	s.Config = &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), BearerToken: token, QPS: -1}
	return s.awaitReady(ctx)
}

// etcdArgs disable fsync: data of a test need not survive a crash.
func etcdArgs(dir, clientURL string, peerPort int) []string {
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--data-dir=" + filepath.Join(dir, "etcd"),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=default=" + peerURL,
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

func apiserverArgs(dir, etcdURL string, port int) []string {
	key := filepath.Join(dir, "sa.key")
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + filepath.Join(dir, "certs"),
		"--token-auth-file=" + filepath.Join(dir, "tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubetest.invalid",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24",
		// Services are reached through their endpoints, since there is no kube-proxy.
		"--enable-aggregator-routing=true",
	}
}

// writeCredentials creates the administrator's token, which it returns, and the key that signs
// service account tokens.
func (s *Server) writeCredentials() (string, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	token := hex.EncodeToString(random)
	line := token + ",admin,admin,system:masters\n"
	if err := os.WriteFile(filepath.Join(s.dir, "tokens.csv"), []byte(line), 0o600); err != nil {
		return "", err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return token, os.WriteFile(filepath.Join(s.dir, "sa.key"), encoded, 0o600)
}

// awaitReady waits for the certificate that the API server generates, and then for the API server.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w\n%s", err, s.logs())
		case exited := <-s.anyExit():
			return fmt.Errorf("%s ended\n%s", exited, s.logs())
		case <-tick.C:
		}
	}
}

func (s *Server) ready(ctx context.Context) error {
	// Read each time, since the file may have been incomplete.
	ca, err := os.ReadFile(filepath.Join(s.dir, "certs", "apiserver.crt"))
	if err != nil {
		return err
	}
	s.Config.CAData = ca
	c, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// freePorts returns unused ports. Test packages run concurrently, so each port is claimed, as
// planes do, until this process exits: another process could otherwise get it before the server has
// started.
func freePorts(n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		claim, err := net.Listen("unix", fmt.Sprintf("@drover-port-%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		claims.Lock()
		claims.held = append(claims.held, claim)
		claims.Unlock()
		ports = append(ports, port)
	}
	return ports, nil
}

// claims keeps listeners from being garbage collected, and thereby closed.
var claims struct {
	sync.Mutex
	held []net.Listener
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
