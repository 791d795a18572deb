package cluster

import (
	"errors"
	"fmt"
	stdio "io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

const (
	etcdTimeout         = time.Hour
	controlPlaneTimeout = time.Hour
	machineTimeout      = 10 * time.Minute
	deleteTimeout       = 30 * time.Minute
	versionSkewCheck    = "eksa-version-skew"
	fluxCheck           = "flux"
	capacityCheck       = "capacity"
)

// change holds the flags of commands that change clusters.
type change struct {
	file       string
	kubeconfig string
	namespace  string
	dryRun     bool
	output     ui.Output

	etcd         time.Duration
	controlPlane time.Duration
	machine      time.Duration
	noTimeouts   bool
	skip         []string
	image        string
	// component is what --component names.
	component string
	// undo is set by --cleanup.
	undo bool
	// yes is set by --yes.
	yes bool
	// skipAddOnWait is set by --skip-add-on-wait.
	skipAddOnWait bool

	io  *ui.IO
	cmd *cobra.Command
	// version is that of this Drover; tests choose another.
	version string
}

// without has the flags of other tools that have no effect, with the reason.
var without = map[string]string{
	"bundles-override":        "Drover ships with everything that it installs",
	"hardware-csv":            "the Packet API knows the machines",
	"tinkerbell-bootstrap-ip": "machines come from the Packet API",
	"skip-ip-check":           "the Packet API reserves free addresses",
	"install-packages":        "install packages with `drover install package` or `drover apply package -f`",
	"w-config":                "the management plane has the kubeconfig of every cluster",
}

// add adds the flags to a command.
func (c *change) add(cmd *cobra.Command) {
	c.cmd = cmd
	f := cmd.Flags()
	f.StringVarP(&c.file, "filename", "f", "", "`file` with the spec of the cluster, or - for standard input")
	f.StringVarP(&c.kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` of the management cluster, for a workload cluster (-mc is an alias)")
	f.BoolVar(&c.dryRun, "dry-run", false, "print the phases and what each would change, and stop")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("kubeconfig")
	c.output.AddFlag(cmd)
	for name, why := range without {
		switch short := map[string]string{"hardware-csv": "z", "w-config": "w"}[name]; name {
		case "skip-ip-check":
			f.Bool(name, false, "has no effect: "+why)
		default:
			f.StringP(name, short, "", "has no effect: "+why)
		}
		_ = f.MarkHidden(name)
	}
}

// addLimits adds the flags of commands that wait for machines.
func (c *change) addLimits(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&c.etcd, "external-etcd-wait-timeout", etcdTimeout, "timeout of external etcd, before that of the control plane")
	f.DurationVar(&c.controlPlane, "control-plane-wait-timeout", controlPlaneTimeout, "timeout of the control plane")
	f.DurationVar(&c.machine, "per-machine-wait-timeout", machineTimeout, "timeout of each worker")
	f.BoolVar(&c.noTimeouts, "no-timeouts", false, "wait without timeouts")
	f.StringArrayVar(&c.skip, "skip-validations", nil, "preflight `check` to skip: "+versionSkewCheck+", "+capacityCheck+" (wait for machines) or "+fluxCheck+" (Flux may revert the change)")
	f.StringVar(&c.image, "manager-image", "", "`image` of Drover for a management cluster with machines that are not on this host (default: built from this program)")
	_ = cmd.RegisterFlagCompletionFunc("skip-validations", cobra.FixedCompletions([]string{versionSkewCheck, capacityCheck, fluxCheck}, cobra.ShellCompDirectiveNoFileComp))
}

// checkFlags warns about flags that have no effect, and rejects unknown checks.
func (c *change) checkFlags() error {
	for name, why := range without {
		if f := c.cmd.Flags().Lookup(name); f != nil && f.Changed {
			fmt.Fprintf(c.io.Err, "--%s has no effect: %s.\n", name, why)
		}
	}
	for _, s := range c.skip {
		switch s {
		case versionSkewCheck, capacityCheck, fluxCheck:
		case "pod-disruption", "vsphere-user-privilege":
			fmt.Fprintf(c.io.Err, "--skip-validations %s has no effect: Drover has no such check.\n", s)
		default:
			return ui.Usagef("--skip-validations %q: unknown check; use %s, %s or %s", s, versionSkewCheck, capacityCheck, fluxCheck)
		}
	}
	return nil
}

// options returns the options that the flags set.
func (c *change) options() (lifecycle.Options, error) {
	dir, err := os.Getwd()
	if err != nil {
		return lifecycle.Options{}, fmt.Errorf("finding the working directory: %w", err)
	}
	o := lifecycle.Options{Dir: dir, Again: c.retryCommand(), Version: c.version, Kubeconfig: c.kubeconfig, Undo: c.undo}
	if !c.noTimeouts {
		o.Limits = lifecycle.Limits{Etcd: c.etcd, ControlPlane: c.controlPlane, Machine: c.machine, Delete: deleteTimeout}
	}
	for _, s := range c.skip {
		o.SkipSkew = o.SkipSkew || s == versionSkewCheck
		o.SkipFlux = o.SkipFlux || s == fluxCheck
		o.SkipCapacity = o.SkipCapacity || s == capacityCheck
	}
	return o, nil
}

// retryCommand returns the command line that resumes an interrupted run.
func (c *change) retryCommand() string {
	words := []string{c.cmd.CommandPath()}
	words = append(words, c.cmd.Flags().Args()...)
	if c.file != "" {
		words = append(words, "-f", c.file)
	}
	if c.kubeconfig != "" {
		words = append(words, "--kubeconfig", c.kubeconfig)
	}
	if c.component != "" {
		words = append(words, "--component", c.component)
	}
	if c.undo {
		words = append(words, "--cleanup")
	}
	if c.skipAddOnWait {
		words = append(words, "--skip-add-on-wait")
	}
	if c.yes {
		words = append(words, "--yes")
	}
	return strings.Join(words, " ")
}

// read reads the spec from the file, with its defaults.
func (c *change) read(verb lifecycle.Verb) (*spec.Config, error) {
	data, err := contents(c.io, c.file)
	if err != nil {
		return nil, err
	}
	return c.parse(verb, data, name(c.file))
}

// parse returns the spec in data, with its defaults. Messages call it from.
func (c *change) parse(verb lifecycle.Verb, data []byte, from string) (*spec.Config, error) {
	config, err := spec.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if err := fill(config); err != nil {
		return nil, err
	}
	// Before defaults, which say what the spec does not.
	if err := c.completeRole(config, verb); err != nil {
		return nil, err
	}
	spec.Default(config)
	return config, nil
}

// name returns what messages call a file.
func name(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// contents reads a file, or standard input.
func contents(io *ui.IO, file string) ([]byte, error) {
	switch file {
	case "":
		return nil, ui.Usagef("specify the file of the spec with -f; `drover generate clusterconfig NAME -p docker` writes one")
	case "-":
		return stdio.ReadAll(io.In)
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("file %q not found; `drover generate clusterconfig NAME -p docker > %s` writes one", file, file)
	}
	return data, err
}
