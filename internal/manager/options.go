package manager

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/controllers/packet"
	"github.com/drover-dev/drover/internal/metal/access"
)

// Options configure a manager. The zero value is not usable; start from DefaultOptions.
type Options struct {
	Install        bool
	Namespace      string
	WatchNamespace string
	WatchFilter    string

	LeaderElect   bool
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration

	HealthAddr  string
	MetricsAddr string
	WebhookAddr string
	WebhookURL  string
	PprofAddr   string

	WebhookClientCA      string
	WebhookClientName    string
	WebhookClientAccount string
	InsecureMetrics      bool

	Concurrency int
	SyncPeriod  time.Duration
	QPS         float32
	Burst       int

	MetalAPIURL        string
	PacketPollInterval time.Duration

	ChartCache      string
	ChartCacheMiB   int
	PlainHTTP       bool
	ResolveInterval time.Duration
	RegistryURL     string
	RegistryCA      string
	Operations      int
	ClusterSlots    int

	TenantNamespaces string

	GitOps         bool
	FluxNamespace  string
	GitWebhookAddr string

	OfferKey          string
	OfferAddr         string
	PackageRegistry   string
	PackageMirrors    map[string]string
	PackageKeys       []string
	KeepBundles       int
	ManagementCluster string

	LogFormat    string
	Verbosity    int
	OTLPEndpoint string
}

// DefaultOptions returns options for a manager on its own machine: everything but the webhooks on
// loopback.
func DefaultOptions() Options {
	return Options{
		Install:       true,
		Namespace:     config.Namespace,
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		HealthAddr:    "127.0.0.1:9440",
		MetricsAddr:   "127.0.0.1:8080",
		WebhookAddr:   ":9443",

		WebhookClientName: config.WebhookClient,

		Concurrency: 10,
		SyncPeriod:  10 * time.Minute,
		QPS:         100,
		Burst:       200,
		MetalAPIURL: os.Getenv(access.URLKey),
		LogFormat:   logAuto,

		PacketPollInterval: packet.DefaultPollInterval,

		ChartCacheMiB:   1024,
		ResolveInterval: 10 * time.Minute,
		Operations:      32,
		ClusterSlots:    4,

		TenantNamespaces: config.TenantLabel + "=true",
		FluxNamespace:    config.FluxNamespace,

		OfferAddr:         config.OfferAddress,
		KeepBundles:       5,
		ManagementCluster: os.Getenv("CLUSTER_NAME"),
	}
}

// AddFlags binds the options to flags, with their current values as defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Install, "install", o.Install, "install or upgrade definitions, roles and webhook configurations before starting")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the lease and of the webhook certificate")
	fs.StringVar(&o.WatchNamespace, "watch-namespace", o.WatchNamespace, "reconcile objects of this namespace only (default all)")
	fs.StringVar(&o.WatchFilter, "watch-filter", o.WatchFilter, "reconcile only objects whose label cluster.x-k8s.io/watch-filter has this value (default all)")

	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "elect one of several managers to reconcile, with the others on standby")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "time after which another manager replaces a silent leader")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "time after which a leader that can't renew its lease stops")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "interval between attempts to acquire or renew the lease")

	fs.StringVar(&o.HealthAddr, "health-addr", o.HealthAddr, "address of /healthz and /readyz")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", o.MetricsAddr, `address of /metrics: HTTPS with authorization by the API server; "0" for none`)
	fs.BoolVar(&o.InsecureMetrics, "insecure-metrics", o.InsecureMetrics, "serve metrics without TLS and authorization, on a loopback address")
	fs.StringVar(&o.WebhookAddr, "webhook-addr", o.WebhookAddr, "address of the webhooks")
	fs.StringVar(&o.WebhookURL, "webhook-url", o.WebhookURL, "with --install, URL at which the API server reaches the webhooks (default: the Service)")
	fs.StringVar(&o.WebhookClientCA, "webhook-client-ca", o.WebhookClientCA, `file with the CA of the certificate that the API server presents to webhooks, or "cluster" for the CA that the API server publishes for its proxy; other clients are rejected (default: certificates are not verified)`)
	fs.StringVar(&o.WebhookClientName, "webhook-client-name", o.WebhookClientName, "common name of that certificate, if a file has its CA")
	fs.StringVar(&o.WebhookClientAccount, "webhook-client-account", o.WebhookClientAccount, "service account whose token the API server presents to webhooks if it has no certificate, as system:serviceaccount:NAMESPACE:NAME; other clients are rejected (default: none; without --webhook-client-ca, requests are not authenticated)")
	fs.StringVar(&o.PprofAddr, "pprof-addr", o.PprofAddr, "address of Go profiles (default none)")

	fs.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "objects of one kind to reconcile at a time")
	fs.DurationVar(&o.SyncPeriod, "sync-period", o.SyncPeriod, "interval at which unchanged objects are reconciled")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to the API server")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "requests to the API server in one burst")

	fs.StringVar(&o.MetalAPIURL, "metal-api-url", o.MetalAPIURL, "URL of the Packet API for clusters that name none (default $METAL_API_URL); the token for it is read from $PACKET_API_KEY")
	fs.DurationVar(&o.PacketPollInterval, "packet-poll-interval", o.PacketPollInterval, "interval at which active devices are observed")

	fs.StringVar(&o.ChartCache, "chart-cache", o.ChartCache, "directory that caches charts by digest; several managers may share it (default: drover/charts in the user's cache directory)")
	fs.IntVar(&o.ChartCacheMiB, "chart-cache-size", o.ChartCacheMiB, "size of the chart cache in MiB; the least recently used charts are evicted first")
	fs.BoolVar(&o.PlainHTTP, "allow-plain-http", o.PlainHTTP, "accept http:// chart repositories, and registries without TLS")
	fs.StringVar(&o.RegistryURL, "registry-url", o.RegistryURL, "registry that add-ons reach without their own credentials or CA, as https://host:port")
	fs.StringVar(&o.RegistryCA, "registry-ca", o.RegistryCA, "file with the CA of that registry (default: the system's CAs)")
	fs.DurationVar(&o.ResolveInterval, "resolve-interval", o.ResolveInterval, "interval at which version ranges of charts are resolved again")
	fs.IntVar(&o.Operations, "addon-operations", o.Operations, "number of releases to install, upgrade or uninstall at a time")
	fs.IntVar(&o.ClusterSlots, "addon-operations-per-cluster", o.ClusterSlots, "number of those on the same cluster")

	fs.StringVar(&o.TenantNamespaces, "tenant-namespaces", o.TenantNamespaces, "label selector of namespaces in which add-ons and packages must set serviceAccountName; empty for none")

	fs.BoolVar(&o.GitOps, "gitops", o.GitOps, "manage clusters through Git; requires the API of Flux")
	fs.StringVar(&o.GitWebhookAddr, "git-webhook-addr", o.GitWebhookAddr, "with --gitops, address at which Git servers announce pushes, over HTTPS: POST /git/NAMESPACE, signed with the token in Secret git-webhook of the namespace of Flux (default none)")
	fs.StringVar(&o.FluxNamespace, "flux-namespace", o.FluxNamespace, "with --gitops, namespace of Flux and of the credentials of the repository; FluxConfigs that name another one are not connected")

	fs.StringVar(&o.OfferKey, "offer-key", o.OfferKey, "file with a key that signs bundles; if it exists, this process serves the charts and packages that ship with Drover, as a mirror of every other registry")
	fs.StringVar(&o.OfferAddr, "offer-addr", o.OfferAddr, "loopback address at which they are served")
	fs.StringVar(&o.PackageRegistry, "package-registry", o.PackageRegistry, "registry of bundles and charts for PackageBundleControllers that name none, as host[:port][/path] (default: that of --registry-url)")
	fs.StringToStringVar(&o.PackageMirrors, "package-mirror", o.PackageMirrors, "mirror of a registry, as host=host[:port][/path], which is tried first; * matches every registry; repeatable")
	fs.StringArrayVar(&o.PackageKeys, "package-key", o.PackageKeys, "file with public keys that verify bundles, in addition to $EKSA_PUBLIC_KEY; repeatable")
	fs.IntVar(&o.KeepBundles, "keep-bundles", o.KeepBundles, "number of unused bundles to keep for each minor version of Kubernetes; negative for all")
	fs.StringVar(&o.ManagementCluster, "management-cluster", o.ManagementCluster, "name of the management cluster, on which packages of workload clusters are never installed (default $CLUSTER_NAME)")

	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "log format: auto (text on a terminal, otherwise json), text or json")
	fs.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "log verbosity, 0 to 10")
	fs.StringVar(&o.OTLPEndpoint, "otlp-endpoint", o.OTLPEndpoint, "URL to send traces to (default $OTEL_EXPORTER_OTLP_ENDPOINT, or none)")
}

// Validate reports every invalid setting with its flag.
func (o Options) Validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(o.Namespace == "", "--namespace must not be empty")
	refuse(o.GitOps && o.FluxNamespace == "", "--flux-namespace must not be empty")
	refuse(o.Concurrency < 1, "--concurrency is %d: must be at least 1", o.Concurrency)
	refuse(o.SyncPeriod < time.Second, "--sync-period is %s: must be at least 1s", o.SyncPeriod)
	refuse(o.QPS <= 0 || o.Burst < 1, "--kube-api-qps is %v and --kube-api-burst %d: both must be positive", o.QPS, o.Burst)
	refuse(o.LeaseDuration <= o.RenewDeadline, "--leader-elect-lease-duration is %s: must be longer than --leader-elect-renew-deadline, %s", o.LeaseDuration, o.RenewDeadline)
	refuse(o.RenewDeadline <= 2*o.RetryPeriod || o.RetryPeriod <= 0, "--leader-elect-renew-deadline is %s: must be more than twice --leader-elect-retry-period, %s", o.RenewDeadline, o.RetryPeriod)
	refuse(o.LogFormat != logAuto && o.LogFormat != logText && o.LogFormat != logJSON, "--log-format is %q: must be auto, text or json", o.LogFormat)
	refuse(o.Verbosity < 0 || o.Verbosity > 10, "--v is %d: must be 0 to 10", o.Verbosity)
	refuse(o.WebhookURL != "" && !o.Install, "--webhook-url requires --install, which writes the webhook configurations")
	refuse(o.InsecureMetrics && !loopback(o.MetricsAddr), "--insecure-metrics requires a loopback address, but --metrics-addr is %q", o.MetricsAddr)
	refuse(!httpsURL(o.WebhookURL), "--webhook-url is %q: must look like https://host:port", o.WebhookURL)
	refuse(o.MetalAPIURL != "" && !httpURL(o.MetalAPIURL), "--metal-api-url is %q: must look like https://host/metal/v1", o.MetalAPIURL)
	refuse(o.PacketPollInterval < time.Second, "--packet-poll-interval is %s: must be at least 1s", o.PacketPollInterval)
	refuse(o.ChartCacheMiB < 1, "--chart-cache-size is %d: must be at least 1", o.ChartCacheMiB)
	refuse(!httpsURL(o.RegistryURL), "--registry-url is %q: must look like https://host:port", o.RegistryURL)
	refuse(o.OfferKey != "" && !loopback(o.OfferAddr), "--offer-addr is %q: must be a loopback address such as 127.0.0.1:5000", o.OfferAddr)
	refuse(o.OfferKey != "" && o.RegistryURL != "", "--offer-key and --registry-url are mutually exclusive: each names the registry of add-ons")
	refuse(o.RegistryCA != "" && o.RegistryURL == "", "--registry-ca requires --registry-url")
	refuse(o.ResolveInterval < time.Second, "--resolve-interval is %s: must be at least 1s", o.ResolveInterval)
	refuse(o.Operations < 1 || o.ClusterSlots < 1, "--addon-operations is %d and --addon-operations-per-cluster %d: both must be at least 1", o.Operations, o.ClusterSlots)
	_, err := o.tenants()
	refuse(err != nil, "--tenant-namespaces is %q: must be a label selector such as drover.dev/tenant=true", o.TenantNamespaces)
	errs = append(errs, o.validateAddresses()...)
	errs = append(errs, o.validateGitOps())
	errs = append(errs, o.validateWebhookClients()...)
	return errors.Join(errs...)
}

func (o Options) validateWebhookClients() []error {
	var errs []error
	if o.WebhookClientCA != "" && o.WebhookClientName == "" {
		errs = append(errs, errors.New("--webhook-client-ca requires --webhook-client-name"))
	}
	if account := o.WebhookClientAccount; account != "" && !isServiceAccount(account) {
		errs = append(errs, fmt.Errorf("--webhook-client-account is %q: must look like system:serviceaccount:NAMESPACE:NAME", account))
	}
	return errs
}

// validateGitOps rejects an endpoint that nobody would serve.
func (o Options) validateGitOps() error {
	if o.GitWebhookAddr != "" && !o.GitOps {
		return errors.New("--git-webhook-addr requires --gitops")
	}
	return nil
}

func (o Options) validateAddresses() []error {
	var errs []error
	for _, a := range []struct {
		flag, value string
		optional    bool
	}{
		{"--health-addr", o.HealthAddr, false},
		{"--webhook-addr", o.WebhookAddr, false},
		{"--metrics-addr", o.MetricsAddr, o.MetricsAddr == "0"},
		{"--pprof-addr", o.PprofAddr, o.PprofAddr == ""},
		{"--git-webhook-addr", o.GitWebhookAddr, o.GitWebhookAddr == ""},
	} {
		if _, _, err := splitAddress(a.value); err != nil && !a.optional {
			errs = append(errs, fmt.Errorf("%s is %q: must look like host:port", a.flag, a.value))
		}
	}
	return errs
}

// isServiceAccount reports whether a user is a service account.
func isServiceAccount(user string) bool {
	_, _, err := serviceaccount.SplitUsername(user)
	return err == nil
}

func splitAddress(addr string) (host string, port int, err error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(service)
	if err == nil && (port < 0 || port > 65535) {
		err = strconv.ErrRange
	}
	return host, port, err
}

func httpURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func httpsURL(raw string) bool {
	if raw == "" {
		return true
	}
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https" && u.Host != ""
}
