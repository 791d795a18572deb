package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

type upOptions struct {
	homeFlag
	plane      plane.Options
	foreground bool
	progressFD int
	metal      metalFlag
}

var upStages = map[string]string{
	"checks":                  "Checking home, ports and binaries",
	"certificates":            "Certificates and encryption keys",
	"etcd":                    "etcd",
	"kube-apiserver":          "Kubernetes API server",
	"components":              "Kinds, roles and webhooks",
	"kube-controller-manager": "Kubernetes controllers",
	"metal":                   "Metal, for machines",
	"registry":                "Registry, with Drover's charts",
	"packages":                "Bundles of Drover's packages",
	"manager":                 "Drover's manager with Cluster API",
}

func newUp(io *ui.IO) *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the management plane up",
		Long: `Bring up a management plane on this machine: etcd, a Kubernetes API server, the
controllers it needs, and Drover's manager with Cluster API inside. It takes
seconds, needs no Docker, and stays in the background until "drover down".

A small OCI registry is part of it, on loopback, with the charts that ship with
Drover; see "drover registry --help".

Everything it keeps is in one directory, the home. Several homes can be up side
by side. Running it again changes nothing.

It also has metal run, the Packet API in front of machines on this host, and
clusters that name no other Packet API get their machines there. Metal is a
service of its own with a home of its own ($DROVER_METAL_HOME): it goes on after
"drover down", and so do its machines. See "drover metal --help".`,
		Example: `  drover up
  drover up --home /srv/drover --api-address 0.0.0.0 --san mgmt.example.com
  drover up --metal memory    # with simulated machines
  drover up --metal none      # without machines
  drover up --foreground      # for systemd and other service managers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	o.add(cmd)
	o.metal.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.foreground, "foreground", false, "stay in the foreground and log to standard error; tells systemd when ready")
	f.StringVar(&o.plane.APIAddress, "api-address", "", "`IP` address that the API server listens on (default 127.0.0.1, or as before)")
	f.IntVar(&o.plane.APIPort, "api-port", 0, "port of the API server (default 6443 if free, otherwise any free one, or as before)")
	f.StringSliceVar(&o.plane.SANs, "san", nil, "further `names` or addresses by which clients reach the API server, and the registry if it has an address")
	f.IntVar(&o.plane.RegistryPort, "registry-port", 0, "port of the registry (default 5000 if free, otherwise another free one, or as before)")
	f.StringVar(&o.plane.RegistryAddress, "registry-address", "", "`IP` address that the registry listens on besides loopback, for machines to pull from (default none, or as before)")
	f.StringVar(&o.plane.BundleKey, "bundle-key", "", "`file` with the private key that bundles of packages are signed with (default: one is made, or as before)")
	f.StringVar(&o.plane.KubeDir, "kube-dir", "", "`directory` with the Kubernetes binary to run ($DROVER_KUBE_DIR)")
	f.IntVar(&o.progressFD, "progress-fd", 0, "")
	_ = f.MarkHidden("progress-fd")
	_ = cmd.MarkFlagDirname("kube-dir")
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
	fmt.Fprintf(io.Err, "\nThe management plane is ready, after %s.\n", ui.Seconds(shown.Elapsed()))
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

// alreadyUp points out what a running plane cannot be changed to.
func (o *upOptions) alreadyUp(ctx context.Context, io *ui.IO) error {
	state, err := plane.ReadState(o.plane.Home)
	if err != nil {
		return err
	}
	if p := o.plane; p.APIAddress != "" || p.APIPort != 0 || len(p.SANs) > 0 || p.RegistryAddress != "" || p.RegistryPort != 0 {
		return fmt.Errorf("the management plane is already up at %s: run `drover down` before changing its address", state.API)
	}
	if err := o.metal.join(ctx, io, o.plane.Home); err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "The management plane is already up at %s; nothing to do.\n", state.API)
	o.next(ctx, io)
	return nil
}

func (o *upOptions) next(ctx context.Context, io *ui.IO) {
	fmt.Fprintf(io.Err, "\n  export KUBECONFIG=%s\n", o.plane.Home.Kubeconfig())
	metal := o.metal.running(ctx)
	if metal != nil {
		fmt.Fprintf(io.Err, "  export PROJECT_ID=%s    # for cluster templates\n", metal.Project)
	}
	fmt.Fprint(io.Err, `  drover kubectl apply -f CLUSTER.yaml    # any Cluster API manifest
  drover status                           # components, memory, clusters
`)
	if metal != nil {
		fmt.Fprintf(io.Err, "  drover machine list                     # %s machines, which outlive the plane\n", metal.Driver)
	}
	fmt.Fprintln(io.Err, "  drover down                             # stop; --purge removes everything")
}
