package manager

import (
	"crypto/tls"
	"net"
	"net/url"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"sigs.k8s.io/cluster-api/util/apiwarnings"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
)

func (o Options) capiOptions() capi.Options {
	return capi.Options{
		WatchNamespace: o.WatchNamespace,
		WatchFilter:    o.WatchFilter,
		Concurrency:    o.Concurrency,
		SyncPeriod:     o.SyncPeriod,
		EtcdLogger:     o.etcdLogger(),
	}
}

// managerOptions adds our options to those that upstream's reconcilers need.
func (o Options) managerOptions(scheme *runtime.Scheme, certs *webhookcert.Certs, clients *callers) ctrl.Options {
	m := capi.ManagerOptions(o.capiOptions())
	for obj, narrowed := range webhookcert.CacheByObject() {
		m.Cache.ByObject[obj] = narrowed
	}
	m.Scheme = scheme
	m.LeaderElection = o.LeaderElect
	m.LeaderElectionID = leaseName
	m.LeaderElectionNamespace = o.Namespace
	// Safe because the process ends as soon as the manager has stopped.
	m.LeaderElectionReleaseOnCancel = true
	m.GracefulShutdownTimeout = ptr.To(stopTimeout)
	m.LeaseDuration, m.RenewDeadline, m.RetryPeriod = &o.LeaseDuration, &o.RenewDeadline, &o.RetryPeriod
	m.HealthProbeBindAddress = o.HealthAddr
	m.PprofBindAddress = o.PprofAddr
	m.Metrics = o.metricsOptions(certs, clients)
	m.WebhookServer = o.webhookServer(certs, clients)
	return m
}

func (o Options) webhookServer(certs *webhookcert.Certs, clients *callers) webhook.Server {
	host, port, _ := splitAddress(o.WebhookAddr) // validated before
	return tracedServer{webhook.NewServer(webhook.Options{
		Host: host, Port: port, TLSOpts: []func(*tls.Config){serveWith(certs), clients.request},
	}), clients}
}

func serveWith(certs *webhookcert.Certs) func(*tls.Config) {
	return func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS13
		c.GetCertificate = certs.GetCertificate
	}
}

// webhookName is the host name of the webhooks' Service.
func (o Options) webhookName() string { return config.WebhookService + "." + o.Namespace + ".svc" }

// webhookNames returns all names in the webhook certificates.
func (o Options) webhookNames() []string {
	names := []string{o.webhookName(), "drover-metrics." + o.Namespace + ".svc", "localhost", "127.0.0.1", "::1"}
	if host, _, _ := splitAddress(o.WebhookAddr); host != "" && host != "0.0.0.0" && host != "::" {
		names = append(names, host)
	}
	if u, err := url.Parse(o.WebhookURL); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (o Options) clientConfig(cfg *rest.Config, log logr.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = o.QPS, o.Burst
	cfg.UserAgent = "drover-manager/" + version.Get().Version
	cfg.WarningHandler = apiwarnings.DefaultHandler(log.WithName("api-warning"))
	if o.traces().Enabled() {
		cfg.Wrap(traceRequests)
	}
	return cfg
}

func loopback(addr string) bool {
	host, _, err := splitAddress(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
