package manager_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestInsecureMetricsNeedNoAuthorization(t *testing.T) {
	_, m := ready(t)
	body, err := get("http://"+m.metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"controller_runtime_reconcile_total", "workqueue_depth", "controller_runtime_webhook_requests_total"} {
		if !strings.Contains(body, metric) {
			t.Errorf("metric %s is missing", metric)
		}
	}
}

func TestMetricsRequireAuthorization(t *testing.T) {
	server, _ := ready(t)
	_, port, err := net.SplitHostPort(kubetest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	clients := newClientCA(t)
	m := launch(t, server.Kubeconfig(t), "--install=false", "--metrics-addr=127.0.0.1:"+port, "--insecure-metrics=false", "--webhook-client-ca="+clients.file)
	m.awaitReady(t)
	url := "https://127.0.0.1:" + port + "/metrics"

	if _, err := get("http://127.0.0.1:"+port+"/metrics", nil); err == nil {
		t.Error("served without TLS")
	}
	for name, tc := range map[string]struct{ token, want string }{
		"anonymous":     {want: "401"},
		"a stranger":    {token: serviceAccountToken(t, server, "stranger", false), want: "403"},
		"metricsreader": {token: serviceAccountToken(t, server, "reader", true)},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			if tc.token != "" {
				header.Set("Authorization", "Bearer "+tc.token)
			}
			_, err := get(url, header)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestMetricsAcceptCertificatesOfAuthorizedUsers(t *testing.T) {
	server, _ := ready(t)
	clients := newClientCA(t)
	m := launch(t, server.Kubeconfig(t), "--install=false", "--insecure-metrics=false", "--webhook-client-ca="+clients.file)
	m.awaitReady(t)
	url := "https://" + m.metrics + "/metrics"
	for name, tc := range map[string]struct {
		with *tls.Certificate
		want int
	}{
		"an administrator":               {clients.issue(t, "root", "system:masters"), http.StatusOK},
		"a stranger":                     {clients.issue(t, "stranger"), http.StatusForbidden},
		"an administrator of another CA": {newClientCA(t).issue(t, "root", "system:masters"), http.StatusForbidden},
		"the API server itself, no user": {clients.issue(t, config.WebhookClient), http.StatusForbidden},
		"nobody":                         {nil, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			if got := send(t, http.MethodGet, url, "", tc.with); got != tc.want {
				t.Errorf("HTTP status %d, want %d", got, tc.want)
			}
		})
	}
}

// serviceAccountToken returns a token of a new service account with or without access to metrics.
func serviceAccountToken(t *testing.T, server *kubetest.Server, name string, mayRead bool) string {
	t.Helper()
	c, ns := server.Clientset(t), server.Namespace(t)
	if mayRead {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "drover-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}},
		}
		if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return newAccount(t, server, ns, name)
}

// token requests a token as a kubelet does for a Pod.
func token(ctx context.Context, t *testing.T, server *kubetest.Server, namespace, account string) string {
	t.Helper()
	request, err := server.Clientset(t).CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}
