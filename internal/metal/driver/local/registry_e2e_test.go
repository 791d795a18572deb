package local

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/drover-dev/drover/internal/kube/node"
)

// registries are two registries on this host, with one image each.
type registries struct {
	plain, secure string // host and port
	ca            []byte
}

// mirrored is a name that no name server resolves.
const mirrored = "registry.example.test"

func serveRegistries(t *testing.T, address netip.Addr) registries {
	t.Helper()
	certificate, ca := selfSigned(t, address)
	r := registries{ca: ca}
	r.plain = serveRegistry(t, address, nil)
	r.secure = serveRegistry(t, address, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}})
	image := pauseImage(t)
	for host, options := range map[string][]name.Option{r.plain: {name.Insecure}, r.secure: nil} {
		ref, err := name.ParseReference(host+"/team/app:v1", options...)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image, transport); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func serveRegistry(t *testing.T, address netip.Addr, config *tls.Config) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	host = l.Addr().String()
	if config != nil {
		l = tls.NewListener(l, config)
	}
	quiet := log.New(io.Discard, "", 0)
	server := &http.Server{Handler: registry.New(registry.Logger(quiet)), ErrorLog: quiet}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return host
}

// selfSigned is a certificate that is its own CA.
func selfSigned(t *testing.T, address netip.Addr) (certificate tls.Certificate, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{address.AsSlice()},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pauseImage contains a static program that runs until it is terminated.
func pauseImage(t *testing.T) v1.Image {
	t.Helper()
	cache, err := node.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := node.FindPrograms("", cache)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(programs.Path(node.Pause))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "app", Mode: 0o755, Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Entrypoint = "linux", runtime.GOARCH, []string{"/app"}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// userdata returns the userdata that configures both registries.
func (r registries) userdata() string {
	const certs = "/etc/containerd/certs.d/"
	file := func(path, content string) string {
		return fmt.Sprintf("- path: %s\n  content: |\n    %s\n", certs+path, indent(strings.TrimSpace(content)))
	}
	return file(mirrored+"/hosts.toml", fmt.Sprintf("server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]", r.plain)) +
		file(r.secure+"/hosts.toml", fmt.Sprintf("[host.\"https://%s\"]\n  ca = \"%sca.crt\"", r.secure, certs)) +
		file("ca.crt", string(r.ca))
}

func appPod(called, on, image string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: app, image: "%s", imagePullPolicy: Always}]
`, called, on, image)
}

// testRegistries checks that a machine pulls from the registries of its userdata, and that one
// without that userdata does not.
func (c *podCluster) testRegistries() {
	c.apply(appPod("plain", "worker-1", mirrored+"/team/app:v1") + appPod("secure", "worker-1", c.registries.secure+"/team/app:v1") +
		appPod("stranger", "cp-1", c.registries.secure+"/team/app:v1"))
	c.kubectl("wait --for=condition=Ready pod/plain pod/secure --timeout=180s")
	c.eventually(c.cp.ID, kubectl+"get event --field-selector involvedObject.name=stranger -o jsonpath={..message} | grep x509", soon)
	c.kubectl("delete pod plain secure stranger")
	c.stage("images pulled from registries of the host")
}
