package manager

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/base/pki"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := DefaultOptions().Validate(); err != nil {
		t.Error(err)
	}
}

func TestInvalidOptionsAreRejectedByFlag(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no concurrency", func(o *Options) { o.Concurrency = 0 }, "--concurrency is 0"},
		{"no namespace", func(o *Options) { o.Namespace = "" }, "--namespace must not be empty"},
		{"a sync period that floods", func(o *Options) { o.SyncPeriod = time.Millisecond }, "--sync-period is 1ms"},
		{"no requests allowed", func(o *Options) { o.QPS = 0 }, "--kube-api-qps is 0"},
		{"a lease that ends before it is given up", func(o *Options) { o.LeaseDuration = o.RenewDeadline }, "--leader-elect-lease-duration is 10s"},
		{"a deadline without a second try", func(o *Options) { o.RetryPeriod = o.RenewDeadline }, "--leader-elect-renew-deadline is 10s"},
		{"an unknown log format", func(o *Options) { o.LogFormat = "xml" }, `--log-format is "xml"`},
		{"an impossible verbosity", func(o *Options) { o.Verbosity = 11 }, "--v is 11"},
		{"an address without a port", func(o *Options) { o.WebhookAddr = "localhost" }, `--webhook-addr is "localhost"`},
		{"a port that is none", func(o *Options) { o.HealthAddr = ":99999" }, `--health-addr is ":99999"`},
		{"metrics nowhere and everywhere", func(o *Options) { o.MetricsAddr = "1" }, `--metrics-addr is "1"`},
		{"a webhook URL that API servers refuse", func(o *Options) { o.WebhookURL = "http://x" }, `--webhook-url is "http://x"`},
		{"a webhook URL without install", func(o *Options) { o.WebhookURL, o.Install = "https://x", false }, "--webhook-url requires --install"},
		{"a registry without TLS", func(o *Options) { o.RegistryURL = "http://x" }, `--registry-url is "http://x"`},
		{"tenants that can't be selected", func(o *Options) { o.TenantNamespaces = "=x" }, `--tenant-namespaces is "=x"`},
		{"an account that is none", func(o *Options) { o.WebhookClientAccount = "admin" }, `--webhook-client-account is "admin"`},
		{"GitOps without a namespace", func(o *Options) { o.GitOps, o.FluxNamespace = true, "" }, "--flux-namespace must not be empty"},
		{"webhooks of Git servers without GitOps", func(o *Options) { o.GitWebhookAddr = ":9444" }, "--git-webhook-addr requires --gitops"},
		{"webhooks of Git servers without a port", func(o *Options) { o.GitOps, o.GitWebhookAddr = true, "localhost" }, `--git-webhook-addr is "localhost"`},
		{"a CA for no registry", func(o *Options) { o.RegistryCA = "ca.crt" }, "--registry-ca requires --registry-url"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := DefaultOptions()
			tc.change(&o)
			if err := o.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestValidateReportsEveryProblem(t *testing.T) {
	err := Options{}.Validate()
	if err == nil || len(strings.Split(err.Error(), "\n")) < 6 {
		t.Errorf("got %v", err)
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:1": true,
		":1": false, "0.0.0.0:1": false, "192.0.2.1:1": false, "example.com:1": false, "[::]:1": false, "0": false,
	} {
		if got := loopback(addr); got != want {
			t.Errorf("loopback(%q) is %t", addr, got)
		}
	}
}

func TestCertificatesCoverEveryWebhookName(t *testing.T) {
	o := DefaultOptions()
	o.WebhookAddr, o.WebhookURL = "192.0.2.1:9443", "https://example.com:9443"
	want := []string{
		"127.0.0.1", "192.0.2.1", "::1", "drover-metrics.drover-system.svc", "drover-webhook.drover-system.svc", "example.com", "localhost",
	}
	if diff := cmp.Diff(want, o.webhookNames()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckVersion(t *testing.T) {
	for found, want := range map[string]string{
		"v1.36.3": "", "v1.29.0": "", "v1.30.1-gke.100": "", "v2.0.0": "",
		"v1.28.15": "requires v1.29.0 or later",
		"unknown":  "reading the version",
	} {
		err := checkVersion("https://x", found)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", found, err, want)
		}
	}
}

func TestPublishedTrust(t *testing.T) {
	authority, err := pki.NewAuthority("front-proxy-ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	chain := func(name string) []*x509.Certificate {
		template := pki.Template(pkix.Name{CommonName: name}, nil, time.Now(), time.Hour)
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		cert, _, err := authority.Issue(template)
		if err != nil {
			t.Fatal(err)
		}
		certs, err := pki.ParseCerts(cert)
		if err != nil {
			t.Fatal(err)
		}
		return certs
	}
	published := &corev1.ConfigMap{Data: map[string]string{proxyCAKey: string(authority.PEM()), proxyNamesKey: `["front-proxy-client"]`}}
	trusted, err := parsePublished(published)
	if err != nil {
		t.Fatal(err)
	}
	if err := trusted.checkServer(chain("front-proxy-client")); err != nil {
		t.Errorf("the API server: %v", err)
	}
	if err := trusted.checkServer(chain("someone")); err == nil {
		t.Error("someone else is accepted")
	}
	for name, data := range map[string]map[string]string{
		"nothing":      nil,
		"no names":     {proxyCAKey: string(authority.PEM())},
		"no CA":        {proxyNamesKey: `["front-proxy-client"]`},
		"a damaged CA": {proxyCAKey: "-----BEGIN", proxyNamesKey: `[]`},
	} {
		if _, err := parsePublished(&corev1.ConfigMap{Data: data}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
