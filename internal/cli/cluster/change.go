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
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

const (
	controlPlaneTimeout = time.Hour
	machineTimeout      = 10 * time.Minute
	deleteTimeout       = 30 * time.Minute
	versionSkewCheck    = "eksa-version-skew"
)

// change are the flags of commands that change clusters.
type change struct {
	file       string
	kubeconfig string
	namespace  string
	dryRun     bool
	output     ui.Output

	controlPlane time.Duration
	machine      time.Duration
	noTimeouts   bool
	skip         []string
	image        string
	// undo is for a cluster that is half made.
	undo bool

	io  *ui.IO
	cmd *cobra.Command
	// version is that of this Drover; tests choose another.
	version string
}

// without are the flags of other tools that mean nothing here, and why.
var without = map[string]string{
	"bundles-override":           "Drover has all that it installs in itself",
	"external-etcd-wait-timeout": "--control-plane-wait-timeout covers etcd",
	"hardware-csv":               "machines come from the Packet API, which knows them",
	"tinkerbell-bootstrap-ip":    "machines come from the Packet API",
	"skip-ip-check":              "addresses are reserved with the Packet API, which knows which are free",
	"install-packages":           "packages are installed with `drover install package`, or `drover apply package -f`",
	"w-config":                   "the management plane has the kubeconfig of every cluster",
}

// add puts the flags on a command.
func (c *change) add(cmd *cobra.Command) {
	c.cmd = cmd
	f := cmd.Flags()
	f.StringVarP(&c.file, "filename", "f", "", "`file` with the spec of the cluster, - for standard input")
	f.StringVarP(&c.kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` of the management cluster, for a workload cluster (-mc is accepted too)")
	f.BoolVar(&c.dryRun, "dry-run", false, "only say which phases there are, and what each will change")
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

// addLimits puts the flags on a command that waits for machines.
func (c *change) addLimits(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&c.controlPlane, "control-plane-wait-timeout", controlPlaneTimeout, "how long the control plane may take")
	f.DurationVar(&c.machine, "per-machine-wait-timeout", machineTimeout, "how long each worker may take")
	f.BoolVar(&c.noTimeouts, "no-timeouts", false, "wait as long as it takes")
	f.StringArrayVar(&c.skip, "skip-validations", nil, "`check` to leave out: "+versionSkewCheck)
	f.StringVar(&c.image, "manager-image", "", "`image` of Drover for a management cluster whose machines are not of this host (default: made of this program)")
	_ = cmd.RegisterFlagCompletionFunc("skip-validations", cobra.FixedCompletions([]string{versionSkewCheck}, cobra.ShellCompDirectiveNoFileComp))
}

// say points out flags that have no effect.
func (c *change) say() error {
	for name, why := range without {
		if f := c.cmd.Flags().Lookup(name); f != nil && f.Changed {
			fmt.Fprintf(c.io.Err, "--%s has no effect: %s.\n", name, why)
		}
	}
	for _, s := range c.skip {
		switch s {
		case versionSkewCheck:
		case "pod-disruption", "vsphere-user-privilege":
			fmt.Fprintf(c.io.Err, "--skip-validations %s has no effect: Drover does not check that.\n", s)
		default:
			return ui.Usagef("--skip-validations %q is no check that can be left out: only %s is", s, versionSkewCheck)
		}
	}
	return nil
}

// options are what the flags mean for the work.
func (c *change) options() (lifecycle.Options, error) {
	dir, err := os.Getwd()
	if err != nil {
		return lifecycle.Options{}, fmt.Errorf("finding where to write files: %w", err)
	}
	o := lifecycle.Options{Dir: dir, Again: c.again(), Version: c.version, Kubeconfig: c.kubeconfig}
	if !c.noTimeouts {
		o.Limits = lifecycle.Limits{ControlPlane: c.controlPlane, Machine: c.machine, Delete: deleteTimeout}
	}
	for _, s := range c.skip {
		o.SkipSkew = o.SkipSkew || s == versionSkewCheck
	}
	return o, nil
}

// again is the command as it was typed.
func (c *change) again() string {
	words := []string{c.cmd.CommandPath()}
	words = append(words, c.cmd.Flags().Args()...)
	if c.file != "" {
		words = append(words, "-f", c.file)
	}
	if c.kubeconfig != "" {
		words = append(words, "--kubeconfig", c.kubeconfig)
	}
	return strings.Join(words, " ")
}

// read reads the spec, with its defaults, and says whether it is that of a workload cluster.
func (c *change) read(verb workflow.Verb) (config *spec.Config, workload bool, err error) {
	data, err := contents(c.io, c.file)
	if err != nil {
		return nil, false, err
	}
	return c.parse(verb, data, name(c.file))
}

// parse is read, of what was read from somewhere.
func (c *change) parse(verb workflow.Verb, data []byte, from string) (config *spec.Config, workload bool, err error) {
	if config, err = spec.Read(data); err != nil {
		return nil, false, fmt.Errorf("%s: %w", from, err)
	}
	if err := fill(config); err != nil {
		return nil, false, err
	}
	// Defaults say what the spec does not, so that what it says itself is looked at before.
	if workload, err = isWorkload(config, verb, c.kubeconfig); err != nil {
		return nil, false, err
	}
	spec.Default(config)
	return config, workload, nil
}

// name is what messages call a file.
func name(file string) string {
	if file == "-" {
		return "the standard input"
	}
	return file
}

// contents are what is in a file.
func contents(io *ui.IO, file string) ([]byte, error) {
	switch file {
	case "":
		return nil, ui.Usagef("-f is needed: which file is the spec in? `drover generate clusterconfig NAME -p docker` writes one to begin with")
	case "-":
		return stdio.ReadAll(io.In)
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %q: `drover generate clusterconfig NAME -p docker > %s` writes one to begin with", file, file)
	}
	return data, err
}
