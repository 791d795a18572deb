package safeconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/internal/test/yamltest"
)

// kubeconfig returns a kubeconfig with more settings of its cluster and its user.
func kubeconfig(cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {%s}}
- {name: other, cluster: {server: "https://192.0.2.9:6443"}}
users:
- {name: u, user: {%s}}
- {name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}}}
contexts: [{name: x, context: {cluster: c, user: u}}, {name: other, context: {cluster: other, user: other}}]
current-context: x
`, cluster, user)
}

const (
	server = `server: "https://192.0.2.1:6443"`
	token  = `token: t`
)

func TestLoadRejectsWhatReachesIntoTheReader(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("the manager's own token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ cluster, user, want string }{
		"a token in a file":          {server, "tokenFile: " + secret, "tokenFile"},
		"a token in a file, too":     {server, token + ", tokenFile: " + secret, "tokenFile"},
		"a certificate in a file":    {server, "client-certificate: " + secret, "client-certificate"},
		"a key in a file":            {server, "client-certificate-data: Y3J0, client-key: " + secret, "client-key"},
		"a CA in a file":             {server + ", certificate-authority: " + secret, token, "certificate-authority"},
		"a program":                  {server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}", "exec"},
		"an auth provider":           {server, "auth-provider: {name: oidc}", "auth-provider"},
		"a proxy on loopback":        {server + `, proxy-url: "http://127.0.0.1:8080"`, token, "proxy-url"},
		"a proxy on IPv6 loopback":   {server + `, proxy-url: "socks5://[::1]:1080"`, token, "proxy-url"},
		"a proxy on mapped loopback": {server + `, proxy-url: "http://[::ffff:127.0.0.1]:80"`, token, "proxy-url"},
		"a proxy at no address":      {server + `, proxy-url: "http://0.0.0.0:8080"`, token, "proxy-url"},
		"a proxy by name":            {server + `, proxy-url: "http://LocalHost.:8080"`, token, "proxy-url"},
		"the metadata service":       {server + `, proxy-url: "http://169.254.169.254"`, token, "proxy-url"},
		"no verification":            {server + ", insecure-skip-tls-verify: true", token, AllowInsecureAnnotation},
		"no TLS":                     {`server: "http://192.0.2.1:6443"`, token, AllowInsecureAnnotation},
		"a server that is a file":    {`server: "file:///etc/passwd"`, token, "server"},
		"no server":                  {"", token, "server"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := REST(kubeconfig(tt.cluster, tt.user), Policy{})
			if err == nil {
				t.Fatalf("accepted: %+v", config)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "own token") {
				t.Errorf("error %q, want one with %q", err, tt.want)
			}
		})
	}
}

func TestLoadKeepsNothingButTheCurrentContext(t *testing.T) {
	cfg, err := Load(kubeconfig(server+", tls-server-name: api, certificate-authority-data: Y2E=", token), Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Clusters) != 1 || len(cfg.AuthInfos) != 1 || len(cfg.Contexts) != 1 || cfg.AuthInfos["u"].Token != "t" {
		t.Errorf("got %+v", cfg)
	}
	config, err := REST(kubeconfig(server+", tls-server-name: api, certificate-authority-data: Y2E=", token), Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://192.0.2.1:6443" || config.BearerToken != "t" || config.ServerName != "api" || string(config.CAData) != "ca" {
		t.Errorf("got %+v", config)
	}
}

func TestErrorsContainNoCredentials(t *testing.T) {
	for _, data := range [][]byte{[]byte("users: [{name: u, user: {token: [hunter2]}}]"), []byte("hunter2"), []byte("{\"token\": hunter2")} {
		if _, err := Load(data, Policy{}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error of %q: %v", data, err)
		}
	}
}

func TestProxyNameThatResolvesToThisHostIsNotDialed(t *testing.T) {
	config, err := REST(kubeconfig(server+`, proxy-url: "http://proxy.example.com:3128"`, token), Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := config.Dial(t.Context(), "tcp", "localhost:1"); err == nil || !strings.Contains(err.Error(), "this host") {
		t.Errorf("dialed %v (%v)", conn, err)
	}
}

func TestAdministratorAllowsInsecureKubeconfigs(t *testing.T) {
	namespaces := fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "closed"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open", Annotations: map[string]string{AllowInsecureAnnotation: "true"}}},
	).Build()
	read := func(p Policy) (*rest.Config, error) {
		return REST(kubeconfig(server+", insecure-skip-tls-verify: true", token), p)
	}
	var insecure *InsecureError
	if _, err := Check(t.Context(), namespaces, "closed", read); !errors.As(err, &insecure) {
		t.Errorf("error %v, want an InsecureError", err)
	}
	if _, err := Check(t.Context(), namespaces, "absent", read); !errors.As(err, &insecure) {
		t.Errorf("error %v, want an InsecureError", err)
	}
	config, err := Check(t.Context(), namespaces, "open", read)
	if err != nil || !config.Insecure {
		t.Errorf("got %+v, %v", config, err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(kubeconfig(server, token))
	f.Add(kubeconfig(server+`, proxy-url: "http://127.0.0.1:8080"`, "tokenFile: /etc/passwd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := REST(data, Policy{})
		if err != nil {
			return
		}
		if config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" ||
			config.ExecProvider != nil || config.AuthProvider != nil || config.Insecure {
			t.Errorf("accepted %+v", config)
		}
	})
}

func TestLoadRejectsKubeconfigsThatGrow(t *testing.T) {
	yamltest.Attack(t, func() error {
		_, err := Load(append(kubeconfig(server, token), yamltest.Text()...), Policy{})
		return err
	})
}
