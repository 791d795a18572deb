package plane

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/process"
	metalcli "github.com/drover-dev/drover/internal/cli/metal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/plane"
)

// clustersTimeout keeps status quick when the API server does not answer.
const clustersTimeout = 5 * time.Second

type statusOptions struct {
	homeFlag
	output ui.Output
}

// statusReport is what -o json prints.
type statusReport struct {
	plane.State
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	Kubeconfig  string `json:"kubeconfig"`
	// Metal is the metal of this host, if there is one.
	Metal    *service.Status       `json:"metal,omitempty"`
	Clusters []inspect.CAPICluster `json:"clusters,omitempty"`
	// ClustersError says why the clusters are not known.
	ClustersError string `json:"clustersError,omitempty"`
	// Git lists what waits for Git: repositories with a problem, and changes that are not done.
	Git []inspect.Link `json:"git,omitempty"`
}

func newStatus(io *ui.IO) *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the embedded plane and its clusters",
		Long: `Show the components of the embedded plane with their state, process, memory and
uptime, its address and versions, its clusters with what they wait for, and the
changes that wait for Git, with the last error. A component that keeps failing is
shown with the end of its log. Metal, a separate service, is shown with its driver,
memory and number of machines.

The exit code is 3 if the plane is not running.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	o.add(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

func (o *statusOptions) run(ctx context.Context, io *ui.IO) error {
	home, err := o.home()
	if err != nil {
		return err
	}
	state, err := plane.ReadState(home)
	if errors.Is(err, plane.ErrNoPlane) {
		return &ui.CodeError{Code: ui.ExitNotRunning, Err: fmt.Errorf("%w: run `drover up` to create one", err)}
	}
	if err != nil {
		return err
	}
	report := statusReport{State: state, Kubeconfig: home.Kubeconfig()}
	report.addMemory()
	report.addClusters(ctx)
	report.addMetal(ctx)
	if err := o.output.Print(io.Out, report, report.table); err != nil {
		return err
	}
	if state.Phase == plane.PhaseStopped || state.Phase == plane.PhaseKilled {
		return ui.Silent(ui.ExitNotRunning)
	}
	return nil
}

func (r *statusReport) addMemory() {
	if r.Supervisor.PID != 0 {
		r.MemoryBytes = process.MemoryBytes(r.Supervisor.PID)
	}
	for _, c := range r.Components {
		r.MemoryBytes += c.MemoryBytes
	}
}

func (r *statusReport) addClusters(ctx context.Context) {
	if r.Phase != plane.PhaseReady && r.Phase != plane.PhaseDegraded {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clustersTimeout)
	defer cancel()
	if err := r.readClusters(ctx); err != nil {
		r.ClustersError = err.Error()
	}
}

func (r *statusReport) readClusters(ctx context.Context) error {
	p, err := inspect.ConnectFile(r.Kubeconfig)
	if err != nil {
		return err
	}
	if r.Clusters, err = p.CAPIClusters(ctx); err != nil {
		return err
	}
	r.Git, err = p.GitWaiting(ctx)
	return err
}

// addMetal adds the metal of this host. Its problems are not those of the plane.
func (r *statusReport) addMetal(ctx context.Context) {
	home, err := metalHome()
	if err != nil {
		return
	}
	if s, err := service.ReadStatus(ctx, home); err == nil {
		r.Metal = &s
	}
}

// machines prints the source of machines.
func (r *statusReport) machines(w stdio.Writer) {
	if r.Metal != nil {
		fmt.Fprintf(w, "Metal       %s\n", metalcli.StatusLine(*r.Metal))
	}
	if r.PacketAPI != "" && (r.Metal == nil || r.Metal.URL != r.PacketAPI) {
		fmt.Fprintf(w, "Packet API  %s\n", r.PacketAPI)
	}
}

func (r *statusReport) table(w stdio.Writer) error {
	fmt.Fprintf(w, "Plane       %s\n", r.phaseLine())
	fmt.Fprintf(w, "API         %s\n", r.API)
	fmt.Fprintf(w, "Kubeconfig  %s\n", r.Kubeconfig)
	if r.Registry != "" {
		fmt.Fprintf(w, "Registry    %s\n", r.Registry)
	}
	if r.GitWebhook != "" {
		fmt.Fprintf(w, "Git webhook %s\n", r.GitWebhook)
	}
	fmt.Fprintf(w, "Versions    Drover %s, Kubernetes %s, Cluster API %s\n", r.Drover, r.Kubernetes, r.ClusterAPI)
	if r.MemoryBytes > 0 {
		fmt.Fprintf(w, "Memory      %s in total\n", mebibytes(r.MemoryBytes))
	}
	r.machines(w)
	if r.Backups != nil {
		fmt.Fprintf(w, "Backup      %s\n", statusLine(r.Backups.Status, time.Now()))
	}
	fmt.Fprintln(w)
	rows := make([][]string, 0, len(r.Components)+1)
	for _, c := range r.Components {
		rows = append(rows, componentRow(c))
	}
	if r.Supervisor.PID != 0 {
		rows = append(rows, []string{"supervisor", "Ready", strconv.Itoa(r.Supervisor.PID), mebibytes(process.MemoryBytes(r.Supervisor.PID)), "", "", r.Drover})
	}
	if err := ui.Table(w, []string{"COMPONENT", "STATE", "PID", "MEMORY", "UPTIME", "RESTARTS", "VERSION"}, rows); err != nil {
		return err
	}
	r.printFailures(w)
	if err := r.clusters(w); err != nil {
		return err
	}
	return r.waitingForGit(w)
}

func (r *statusReport) phaseLine() string {
	switch r.Phase {
	case plane.PhaseStopped:
		return "Stopped; start it with `drover up`"
	case plane.PhaseKilled:
		return "Killed: the supervisor ended without a shutdown; no data is lost, start it with `drover up`"
	case plane.PhaseDegraded:
		return "Degraded: some components are not ready"
	default:
		return r.Phase
	}
}

// printFailures prints the end of the log of each component that keeps exiting.
func (r *statusReport) printFailures(w stdio.Writer) {
	for _, c := range r.Components {
		if len(c.LogTail) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s exited %d times, last with %q. Last lines of %s:\n", c.Name, c.Restarts, c.LastExit, c.Log)
		for _, line := range c.LogTail {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
}

func (r *statusReport) clusters(w stdio.Writer) error {
	if r.ClustersError != "" {
		fmt.Fprintf(w, "\nFailed to list clusters: %s\n", r.ClustersError)
		return nil
	}
	if len(r.Clusters) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	rows := make([][]string, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		rows = append(rows, []string{c.Namespace, c.Name, c.Phase, c.Available, c.Waiting()})
	}
	return ui.Table(w, []string{"NAMESPACE", "CLUSTER", "PHASE", "AVAILABLE", "WAITING FOR"}, rows)
}

// waitingForGit prints what waits for Git.
func (r *statusReport) waitingForGit(w stdio.Writer) error {
	if len(r.Git) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	rows := make([][]string, 0, len(r.Git))
	for _, link := range r.Git {
		rows = append(rows, []string{link.Namespace, link.String()})
	}
	return ui.Table(w, []string{"NAMESPACE", "WAITING FOR GIT"}, rows)
}

func componentRow(c plane.ComponentStatus) []string {
	pid, memory, uptime := "-", "-", "-"
	if c.PID != 0 {
		pid, memory = strconv.Itoa(c.PID), mebibytes(c.MemoryBytes)
	}
	// One that is part of the supervisor has no process of its own.
	if c.PID != 0 || c.Ready() {
		uptime = time.Since(c.Started).Round(time.Second).String()
	}
	return []string{c.Name, c.State, pid, memory, uptime, strconv.Itoa(c.Restarts), c.Version}
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
