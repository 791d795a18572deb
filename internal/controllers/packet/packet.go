// Package packet is the infrastructure provider for machines behind the Packet HTTP API. It
// combines the controllers and webhooks of the provider, which Setup lists, and that of external
// etcd, which runs on such machines. It has no logic of its own.
package packet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/controllers/capi/hooks"
	etcdcluster "github.com/drover-dev/drover/internal/controllers/etcd/cluster"
	"github.com/drover-dev/drover/internal/controllers/packet/admission"
	"github.com/drover-dev/drover/internal/controllers/packet/cluster"
	"github.com/drover-dev/drover/internal/controllers/packet/machine"
	"github.com/drover-dev/drover/internal/controllers/packet/template"
	"github.com/drover-dev/drover/internal/controllers/packet/upgrade"
	"github.com/drover-dev/drover/internal/controllers/packet/vip"
	"github.com/drover-dev/drover/internal/metal/access"
)

// DefaultPollInterval is how often the state of active devices is read.
const DefaultPollInterval = 5 * time.Minute

// Options configure the provider.
type Options struct {
	// Credentials are for clusters without their own.
	Credentials access.Credentials
	// BGP is how projects of clusters with kube-vip are configured.
	BGP cluster.BGP
	// PollInterval is how often the state of active devices is read.
	PollInterval time.Duration
	// WatchFilter limits the provider to objects with this value of the watch label; empty means
	// all.
	WatchFilter string
	// Concurrency is the number of objects of one kind that are reconciled at a time.
	Concurrency int
	// UserAgent identifies the manager to the Packet API.
	UserAgent string
	// Workloads connects to workload clusters.
	Workloads clustercache.ClusterCache
	// Secrets reads Secrets of clusters from a cache; others are read from the API server.
	Secrets ctrlclient.Reader
	// Metadata reads the metadata of Secrets from a cache.
	Metadata ctrlclient.Reader
	// Hooks are the runtime hooks of Cluster API; nil if machines are never upgraded in place.
	Hooks *hooks.Client
}

// Setup adds the controllers and webhooks to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	var (
		client = mgr.GetClient()
		events = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		source = &access.Source{Secrets: contents.New(o.Metadata, mgr.GetAPIReader()), Default: o.Credentials, UserAgent: o.UserAgent}
		now    = clock.RealClock{}
		limits = controller.Options{MaxConcurrentReconciles: o.Concurrency}
	)
	clusters := &cluster.Controller{Client: client, Access: source, Events: events, Clock: now, BGP: o.BGP, WatchFilter: o.WatchFilter}
	machines := &machine.Controller{
		Client: client, Access: source, Events: events, Clock: now, PollInterval: o.PollInterval, WatchFilter: o.WatchFilter,
	}
	endpoints := &vip.Controller{
		Client: client, Access: source, Prober: vip.HTTPProber{Secrets: []ctrlclient.Reader{o.Secrets, mgr.GetAPIReader()}}, Events: events, Clock: now, WatchFilter: o.WatchFilter,
	}
	if o.Workloads != nil {
		endpoints.Leases = vip.WorkloadLeases{Workloads: o.Workloads}
	}
	etcds := &etcdcluster.Controller{
		Client: client, Secrets: contents.New(o.Metadata, mgr.GetAPIReader()), Access: source, Etcd: etcdcluster.Client{}, Events: events, Clock: now, WatchFilter: o.WatchFilter,
	}
	if o.Hooks != nil {
		(&upgrade.Upgrader{
			Client: client, Live: mgr.GetAPIReader(), Access: source, Workloads: o.Workloads, Events: events, Clock: now,
		}).Serve(o.Hooks)
	}
	templates := &template.Controller{Client: client, Access: source, WatchFilter: o.WatchFilter}
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"PacketCluster", func() error { return clusters.SetupWithManager(ctx, mgr, limits) }},
		{"PacketMachine", func() error { return machines.SetupWithManager(mgr, o.Workloads, limits) }},
		{"PacketMachineTemplate", func() error { return templates.SetupWithManager(mgr, limits) }},
		{"endpoints", func() error { return endpoints.SetupWithManager(mgr, limits) }},
		{"EtcdadmCluster", func() error { return etcds.SetupWithManager(mgr, limits) }},
		{"webhooks", func() error { return admission.Setup(mgr) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of the Packet provider: %w", part.name, err)
		}
	}
	return nil
}
