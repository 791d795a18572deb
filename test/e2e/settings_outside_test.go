package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/metal"
)

// outside provides the external services of the test's machines: a registry mirror and a proxy on
// this host, both with a password.
type outside struct {
	mirror    *net.TCPAddr
	authority *pki.Authority

	proxy  *net.TCPAddr
	mu     sync.Mutex
	tunnel []string // requested destinations
}

// Percent signs have a meaning in URLs and in systemd units.
const (
	outsideUser     = "herder"
	outsidePassword = "100% wool@home"
)

// newOutside serves at an address of this host that machines can reach.
func newOutside(t *testing.T, address net.IP) *outside {
	t.Helper()
	authority, err := pki.NewAuthority("mirror", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(&x509.Certificate{
		IPAddresses: []net.IP{address}, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{authority: authority}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	o.mirror = serve(t, address, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != outsideUser || password != outsidePassword {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	})
	o.proxy = serve(t, address, nil, o.connect)
	o.push(t, "hub/team/app:v1")
	return o
}

func serve(t *testing.T, address net.IP, config *tls.Config, handler http.HandlerFunc) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return at
}

// push pushes an image with content but no program.
func (o *outside) push(t *testing.T, image string) {
	t.Helper()
	ref, err := name.ParseReference(o.mirror.String() + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	content, err := random.Image(1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: o.authority.Pool(), MinVersion: tls.VersionTLS12}}
	if err := remote.Write(ref, content, remote.WithTransport(transport), remote.WithAuth(&authn.Basic{Username: outsideUser, Password: outsidePassword})); err != nil {
		t.Fatal(err)
	}
}

// proxyURL returns the proxy's address in its usual form.
func (o *outside) proxyURL() string {
	return (&url.URL{Scheme: "http", User: url.UserPassword(outsideUser, outsidePassword), Host: o.proxy.String()}).String()
}

// connect implements the proxy: it records the destination and connects to nothing.
func (o *outside) connect(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(outsideUser+":"+outsidePassword))
	if r.Header.Get("Proxy-Authorization") != want {
		o.note("somebody else to " + r.Host)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	o.note(r.Host)
	w.WriteHeader(http.StatusBadGateway)
}

func (o *outside) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.tunnel, what) {
		o.tunnel = append(o.tunnel, what)
	}
}

// tunnels returns the distinct destinations.
func (o *outside) tunnels() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.tunnel)
}

// keySocket is the path of the plugin's socket on each machine.
const keySocket = "/run/keys/socket.sock"

// keys is a KMS plugin for API servers. It only flips bits: the test checks that it is used.
type keys struct{}

func (keys) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "1"}, nil
}

func (keys) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{Ciphertext: turn(data), KeyID: "1"}, nil
}

func (keys) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	return turn(r.Ciphertext), nil
}

func turn(data []byte) []byte {
	out := slices.Clone(data)
	for i := range out {
		out[i] ^= 0xff
	}
	return out
}

// serveKeys runs the plugin for every current and future machine until ctx ends: its sockets are on
// the machines, it runs here.
func (f *fleet) serveKeys(ctx context.Context) {
	served := map[string]bool{}
	for ctx.Err() == nil {
		for _, m := range f.machines() {
			// Once containerd runs, all file systems are mounted, and kubeadm has not started.
			if _, err := os.Stat(m.path("/run/containerd/containerd.sock")); err == nil && !served[m.root] {
				served[m.root] = m.serveKeys(ctx)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// machine is a machine as seen from the host.
type machine struct{ root string }

// machines returns the running machines of the fleet.
func (f *fleet) machines() []machine {
	files, _ := filepath.Glob(filepath.Join(metal.Home{Dir: f.metalHome()}.LocalDir(), "machines", "*", "state.json"))
	var out []machine
	for _, file := range files {
		var process struct{ PID int }
		data, _ := os.ReadFile(file)
		if json.Unmarshal(data, &process) != nil {
			continue
		}
		m := machine{root: fmt.Sprintf("/proc/%d/root", process.PID)}
		host, err := os.Stat("/")
		if own, ownErr := os.Stat(m.root + "/"); err == nil && ownErr == nil && !os.SameFile(host, own) { // a starting machine has none of its own yet
			out = append(out, m)
		}
	}
	return out
}

func (m machine) path(file string) string { return filepath.Join(m.root, file) }

// read returns a file of the machine, or "" if it does not exist.
func (m machine) read(file string) string {
	data, _ := os.ReadFile(m.path(file))
	return string(data)
}

func (m machine) serveKeys(ctx context.Context) bool {
	l, err := m.listen(keySocket)
	if err != nil {
		return false
	}
	server := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(server, service.NewGRPCService("", 0, keys{}))
	go server.Serve(l)
	context.AfterFunc(ctx, server.Stop)
	return true
}

// listen creates a socket on the machine as its root, whom the kernel may know by another number:
// users of the host don't exist on the machine, and can't create files there.
func (m machine) listen(socket string) (net.Listener, error) {
	info, err := os.Stat(m.path("/run"))
	if err != nil {
		return nil, err
	}
	root := int(info.Sys().(*syscall.Stat_t).Uid)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		_, _ = unix.SetfsuidRetUid(0)
		_, _ = unix.SetfsgidRetGid(0)
	}()
	for _, set := range []func(int) (int, error){unix.SetfsgidRetGid, unix.SetfsuidRetUid} {
		if _, err := set(root); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(m.path(socket)), 0o700); err != nil {
		return nil, err
	}
	return net.Listen("unix", m.path(socket))
}
