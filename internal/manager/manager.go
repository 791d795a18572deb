// Package manager is the composition root of `drover manager`: one controller-runtime manager with
// every controller and every webhook of the product, with its certificates, health, metrics, logs
// and traces.
//
// It owns only the start order. Start with Run, which reads as that order.
package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/tracing"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/addons"
	"github.com/drover-dev/drover/internal/controllers/backup"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/controllers/clusters"
	"github.com/drover-dev/drover/internal/controllers/gitops"
	"github.com/drover-dev/drover/internal/controllers/packages"
	"github.com/drover-dev/drover/internal/controllers/packet"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
)

// leaseName is the lease of the leader election; the manager's role allows only this name.
const leaseName = config.ServiceAccount

// stopTimeout bounds the wait for reconciles at shutdown. They are canceled and can be repeated,
// but upstream's ClusterCache may block forever when it notifies a stopped controller of a
// connection.
const stopTimeout = 5 * time.Second

// Run starts the manager against the cluster of cfg and returns when ctx ends or the manager fails.
// A process can run only one manager: upstream's feature gates and metrics are global.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	log := o.setLogger()
	ctx = ctrl.LoggerInto(ctx, log)
	stopTracing, err := tracing.Start(ctx, o.traces())
	if err != nil {
		return err
	}
	defer stopTracing()
	cfg = o.clientConfig(cfg, log)
	if err := checkServer(cfg); err != nil {
		return err
	}
	if err := o.install(ctx, cfg, log); err != nil {
		return err
	}
	o, endOffer, err := o.startOffer(ctx, log)
	if err != nil {
		return err
	}
	defer endOffer()
	certs, err := webhookcert.New(cfg, webhookcert.Options{Namespace: o.Namespace, Names: o.webhookNames()})
	if err != nil {
		return fmt.Errorf("preparing webhook certificates: %w", err)
	}
	mgr, err := o.newManager(ctx, cfg, certs)
	if err != nil {
		return err
	}
	log.Info("Starting", "version", version.Get().Version, "server", cfg.Host, "leaderElection", o.LeaderElect)
	err = mgr.Start(ctx)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		log.Info("Stopped before every reconcile ended", "waited", stopTimeout)
		return nil
	}
	if err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	log.Info("Stopped")
	return nil
}

func (o Options) install(ctx context.Context, cfg *rest.Config, log logr.Logger) error {
	if !o.Install {
		return nil
	}
	err := install.Apply(ctx, cfg, install.Options{
		WebhookURL: o.WebhookURL, Namespace: o.Namespace, Log: log.WithName("install"),
	})
	if err != nil {
		return fmt.Errorf("installing Drover's API: %w; to use --install=false, apply provider-components.yaml first", err)
	}
	return nil
}

// newManager returns a complete manager, ready to start. It obtains certificates concurrently,
// since both mostly wait for the API server.
func (o Options) newManager(ctx context.Context, cfg *rest.Config, certs *webhookcert.Certs) (ctrl.Manager, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := certs.Ensure(groupCtx)
		return err
	})
	mgr, err := o.assemble(ctx, cfg, certs)
	if certErr := group.Wait(); certErr != nil {
		return nil, fmt.Errorf("preparing webhook certificates: %w", certErr)
	}
	return mgr, err
}

func (o Options) assemble(ctx context.Context, cfg *rest.Config, certs *webhookcert.Certs) (ctrl.Manager, error) {
	if err := capi.EnableFeatures(); err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	clients, err := o.newCallers(cfg, ctrl.LoggerFrom(ctx))
	if err != nil {
		return nil, err
	}
	mgr, err := reconcile.NewManager(cfg, o.managerOptions(scheme, certs, clients))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	for _, add := range []func(context.Context, ctrl.Manager) error{
		o.addProviders,
		o.addReceiver(certs),
		addAbout,
		func(_ context.Context, mgr ctrl.Manager) error { return certs.SetupWithManager(mgr) },
		func(ctx context.Context, mgr ctrl.Manager) error { return o.addHealth(ctx, mgr, certs) },
	} {
		if err := add(ctx, mgr); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// addProviders adds Cluster API, then what builds on its connections to workload clusters.
func (o Options) addProviders(ctx context.Context, mgr ctrl.Manager) error {
	shared, err := capi.Setup(ctx, mgr, o.capiOptions())
	if err != nil {
		return err
	}
	if err := packet.Setup(ctx, mgr, o.packetOptions(shared, mgr.GetCache())); err != nil {
		return err
	}
	if err := o.addSnapshots(ctx, mgr, shared); err != nil {
		return err
	}
	connections, err := o.connect(mgr, shared)
	if err != nil {
		return err
	}
	if err := addons.Setup(ctx, mgr, o.addonsOptions(connections)); err != nil {
		return err
	}
	options, err := o.packagesOptions(connections)
	if err != nil {
		return err
	}
	if err := packages.Setup(ctx, mgr, options); err != nil {
		return err
	}
	if err := clusters.Setup(mgr, o.clustersOptions(connections)); err != nil {
		return err
	}
	if err := backup.Setup(mgr, backup.Options{Metadata: shared.Metadata, Registry: o.OfferAddr}); err != nil {
		return err
	}
	return gitops.Setup(mgr, o.gitOpsOptions(connections))
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of Kubernetes: %w", err)
	}
	if err := capi.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of Cluster API: %w", err)
	}
	if err := infrav1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of the Packet provider: %w", err)
	}
	if err := errors.Join(etcdbootstrapv1.AddToScheme(scheme), etcdv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the API of external etcd: %w", err)
	}
	if err := addonsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of add-ons: %w", err)
	}
	if err := anywherev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of clusters: %w", err)
	}
	if err := droverv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of records: %w", err)
	}
	if err := packagesv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API of packages: %w", err)
	}
	if err := errors.Join(sourcev1.AddToScheme(scheme), kustomizev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the API of Flux: %w", err)
	}
	return scheme, nil
}
