package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

type upOptions struct {
	homeFlag
	plane          plane.Options
	foreground     bool
	progressFD     int
	metal          metalFlag
	gitOps         bool
	backupInterval time.Duration
}

var upStages = map[string]string{
	"checks":                  "Checking home, ports and binaries",
	"certificates":            "Issuing certificates and encryption keys",
	"etcd":                    "Starting etcd",
	"kube-apiserver":          "Starting the Kubernetes API server",
	"components":              "Installing definitions, roles and webhooks",
	"gitops":                  "Installing definitions and roles of Flux",
	"source-controller":       "Starting source-controller",
	"kustomize-controller":    "Starting kustomize-controller",
	"kube-controller-manager": "Starting the Kubernetes controllers",
	"metal":                   "Finding machines for clusters",
	"registry":                "Starting the registry",
	"packages":                "Publishing package bundles",
	"manager":                 "Starting the manager with Cluster API",
}

func newUp(io *ui.IO) *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the embedded management plane",
		Long: `Start the embedded management plane on this machine: etcd, a Kubernetes API server
and its controllers, and Drover's manager with Cluster API. It starts in seconds,
needs no Docker, and runs in the background until "drover down". Secrets are
encrypted before they reach its etcd.

A small OCI registry on loopback is part of it and serves the charts that ship
with Drover; see "drover registry --help".

All state is in one directory, the home. Several homes can run side by side.
Running the command again changes nothing.

With --gitops it also runs the Flux controllers: source-controller, which fetches
Git repositories, and kustomize-controller, which applies what they contain. A
running plane starts them, too, with this flag or when somebody creates a
FluxConfig. The choice is remembered. --gitops=false turns them off, also for
FluxConfigs; objects that they have applied stay.

The plane backs itself up every hour, to encrypted files in HOME-backups beside its
home. The key that opens them is in HOME-recovery: keep a copy of it elsewhere.

It also starts metal, the Packet API server for machines of this host, which
provisions machines for clusters that name no other Packet API. Metal is a
separate service with its own home ($DROVER_METAL_HOME): it keeps running after
"drover down", and so do its machines. See "drover metal --help".`,
		Example: `  drover up
  drover up --home /srv/drover --api-address 0.0.0.0 --san mgmt.example.com
  drover up --metal memory    # with simulated machines
  drover up --metal none      # without machines
  drover up --gitops          # with Flux
  drover up --foreground      # for systemd and other service managers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("gitops") {
				o.plane.GitOps = &o.gitOps
			}
			if cmd.Flags().Changed("backup-interval") {
				o.plane.Backups.Every = &o.backupInterval
			}
			return o.run(cmd.Context(), io)
		},
	}
	o.add(cmd)
	o.metal.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.foreground, "foreground", false, "run in the foreground and log to standard error; notifies systemd when ready")
	f.StringVar(&o.plane.APIAddress, "api-address", "", "`IP` address that the API server listens on (default: the previous one, or 127.0.0.1)")
	f.IntVar(&o.plane.APIPort, "api-port", 0, "port of the API server (default: the previous one, or 6443 if free, or any free port)")
	f.StringSliceVar(&o.plane.SANs, "san", nil, "additional `names` or addresses in the certificates of the API server, and of the registry if it has an address")
	f.IntVar(&o.plane.RegistryPort, "registry-port", 0, "port of the registry (default: the previous one, or 5000 if free, or any free port)")
	f.StringVar(&o.plane.RegistryAddress, "registry-address", "", "`IP` address that the registry listens on besides loopback, for machines to pull from (default: the previous one, or none)")
	f.StringVar(&o.plane.BundleKey, "bundle-key", "", "`file` with the private key that signs package bundles (default: the previous one, or a new key)")
	f.BoolVar(&o.gitOps, "gitops", false, "run the Flux controllers (default: the previous choice, or off)")
	f.DurationVar(&o.backupInterval, "backup-interval", 0, "interval of scheduled backups, 0 for none (default: the previous one, or 1h)")
	f.IntVar(&o.plane.Backups.Keep, "backup-keep", 0, "number of scheduled backups to keep (default: the previous one, or 48)")
	f.StringVar(&o.plane.Backups.Dir, "backup-dir", "", "`directory` for scheduled backups (default: the previous one, or HOME-backups beside the home)")
	f.StringVar(&o.plane.KubeDir, "kube-dir", "", "`directory` with the Kubernetes binary to run ($DROVER_KUBE_DIR)")
	f.IntVar(&o.progressFD, "progress-fd", 0, "")
	_ = f.MarkHidden("progress-fd")
	_ = cmd.MarkFlagDirname("kube-dir")
	_ = cmd.MarkFlagDirname("backup-dir")
	_ = cmd.MarkFlagFilename("bundle-key")
	return cmd
}

func (o *upOptions) run(ctx context.Context, io *ui.IO) error {
	home, err := o.home()
	if err != nil {
		return err
	}
	o.plane.Home = home
	if err := o.metal.complete(ctx); err != nil {
		return err
	}
	o.plane.Packet, o.plane.Flags = o.metal.finder(), []string{"--metal", o.metal.asked}
	if o.foreground {
		return o.runForeground(ctx, io)
	}
	tell, shown := progress(io, upStages)
	o.plane.Progress = tell
	switch err := plane.Launch(ctx, o.plane); {
	case errors.Is(err, plane.ErrRunning):
		return o.alreadyUp(ctx, io)
	case err != nil:
		return err
	}
	fmt.Fprintf(io.Err, "\nThe embedded plane is ready after %s.\n", ui.Seconds(shown.Elapsed()))
	o.next(ctx, io)
	return nil
}

func (o *upOptions) runForeground(ctx context.Context, io *ui.IO) error {
	o.plane.Log = slog.New(slog.NewTextHandler(io.Err, nil))
	if o.progressFD == 0 {
		o.plane.Progress, _ = progress(io, upStages)
		return plane.Run(ctx, o.plane)
	}
	pipe := os.NewFile(uintptr(o.progressFD), "progress")
	if pipe == nil {
		return ui.Usagef("--progress-fd %d is not open", o.progressFD)
	}
	defer pipe.Close()
	tell := plane.ProgressTo(pipe)
	o.plane.Progress = func(e plane.Event) {
		tell(e)
		if e.Status == plane.AllReady {
			_ = pipe.Close()
		}
	}
	return plane.Run(ctx, o.plane)
}

// alreadyUp rejects changes that a running plane doesn't support.
func (o *upOptions) alreadyUp(ctx context.Context, io *ui.IO) error {
	state, err := plane.ReadState(o.plane.Home)
	if err != nil {
		return err
	}
	if p := o.plane; p.APIAddress != "" || p.APIPort != 0 || len(p.SANs) > 0 || p.RegistryAddress != "" || p.RegistryPort != 0 {
		return fmt.Errorf("the embedded plane is already running at %s: run `drover down` before you change its address", state.API)
	}
	asked := o.plane.GitOps
	if asked != nil && !*asked && state.GitOps {
		return fmt.Errorf("the embedded plane is already running at %s: run `drover down` before you turn GitOps off", state.API)
	}
	if err := o.metal.join(ctx, io, o.plane.Home); err != nil {
		return err
	}
	if asked != nil && *asked && !state.GitOps {
		if err := plane.UseGitOps(ctx, o.plane.Home); err != nil {
			return err
		}
		fmt.Fprintf(io.Err, "The embedded plane at %s now runs Flux.\n", state.API)
	} else {
		fmt.Fprintf(io.Err, "The embedded plane is already running at %s; nothing to do.\n", state.API)
	}
	o.next(ctx, io)
	return nil
}

func (o *upOptions) next(ctx context.Context, io *ui.IO) {
	fmt.Fprintf(io.Err, "\n  export KUBECONFIG=%s\n", o.plane.Home.Kubeconfig())
	metal := o.metal.running(ctx)
	if metal != nil {
		fmt.Fprintf(io.Err, "  export PROJECT_ID=%s    # for cluster templates\n", metal.Project)
	}
	fmt.Fprint(io.Err, `  drover kubectl apply -f CLUSTER.yaml    # apply any Cluster API manifest
  drover status                           # show components and clusters
`)
	if metal != nil {
		fmt.Fprintf(io.Err, "  drover machine list                     # list the %s machines, which outlive the plane\n", metal.Driver)
	}
	fmt.Fprintln(io.Err, "  drover down                             # stop; --purge deletes all data")
}
