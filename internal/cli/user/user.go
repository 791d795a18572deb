// Package user has the commands about people who may use a management cluster.
package user

import (
	"context"
	"fmt"
	stdio "io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/cli/verb"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/operate/users"
)

// AddCommands puts the noun below its verbs.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	verb.Of(root, group, "create").AddCommand(newCreate(io))
	verb.Of(root, group, "get").AddCommand(newGet(io))
	verb.Of(root, group, "delete").AddCommand(newDelete(io))
}

// who is a user, and the plane that they are to use.
type who struct {
	plane management.Flags
	users.User
}

// invitation is what somebody is to get.
type invitation struct {
	who

	valid time.Duration
	file  string
}

func (w *who) addFlags(cmd *cobra.Command, namespace string) {
	w.plane.Add(cmd.Flags())
	cmd.Flags().StringVarP(&w.Namespace, "namespace", "n", "", namespace)
	_ = cmd.MarkFlagFilename("kubeconfig")
}

func (w *who) open() (*users.Directory, string, error) {
	cfg, err := w.plane.Config()
	if err != nil {
		return nil, "", err
	}
	d, err := users.Open(cfg)
	return d, cfg.Host, err
}

func newCreate(io *ui.IO) *cobra.Command {
	var i invitation
	cmd := &cobra.Command{
		Use:   "user NAME --namespace NAMESPACE",
		Short: "Let somebody use a management cluster, and get a kubeconfig for them",
		Long: `Let somebody use a management cluster, and print a kubeconfig for them, or write it
to a file. Its token is a secret: hand it over as one.

A creator may make, upgrade and delete clusters in a namespace of theirs, which is
made if it is not there, and packages on those clusters. A viewer may look. Neither
sees credentials of machines, nor anything of other namespaces.

Called again, it gives a new kubeconfig. Those given before are good until their
time is over, or the user is deleted. Where people sign in otherwise, with OIDC for
one, nobody has to be created: bind the roles to them.`,
		Example: `  drover create user ann -n team-a > ann.kubeconfig
  drover create user bob -n team-a --role viewer --valid 720h -o bob.kubeconfig -k mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			i.Name = args[0]
			if err := i.Check(); err != nil {
				return ui.Usage(err)
			}
			if i.valid < users.Shortest {
				return ui.Usagef("--valid %s is too short: %s is the least", i.valid, users.Shortest)
			}
			d, host, err := i.open()
			if err != nil {
				return err
			}
			if i.file != "" {
				if err := i.origin(host).MayWrite(i.file); err != nil {
					return err
				}
			}
			if err := d.Add(cmd.Context(), i.User); err != nil {
				return err
			}
			return i.deliver(cmd.Context(), io, d, host)
		},
	}
	i.addFlags(cmd, "`namespace` of the user's clusters")
	f := cmd.Flags()
	f.StringVar(&i.Role, "role", "creator", "what the user may do: "+strings.Join(users.Roles(), " or "))
	f.DurationVar(&i.valid, "valid", 24*time.Hour, "how long the kubeconfig is good for")
	f.StringVarP(&i.file, "output", "o", "", "write the kubeconfig to this `file`, which only its owner can read")
	_ = cmd.MarkFlagRequired("namespace")
	_ = cmd.MarkFlagFilename("output")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(users.Roles(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// origin marks kubeconfigs of the user.
func (i *invitation) origin(host string) kubeconfig.Origin {
	return kubeconfig.Origin{Plane: host, Namespace: i.Namespace, Cluster: "user " + i.Name}
}

// deliver puts a new kubeconfig where it was asked for.
func (i *invitation) deliver(ctx context.Context, io *ui.IO, d *users.Directory, host string) error {
	config, until, err := d.Kubeconfig(ctx, i.User, i.valid)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	k, err := kubeconfig.Parse(data, i.origin(host), "")
	if err != nil {
		return err
	}
	if i.file != "" {
		err = k.Write(i.file)
	} else if data, err = k.Encode(); err == nil {
		_, err = io.Out.Write(data)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "%s is a %s in namespace %s, by this kubeconfig until %s.\n", i.Name, i.Role, i.Namespace, until.Local().Format(time.DateTime))
	if onlyHere(host) {
		fmt.Fprintf(io.Err, "It leads to %s, which is on this machine only.\n", host)
	}
	return nil
}

// onlyHere says that an address is this machine's alone.
func onlyHere(host string) bool {
	u, err := url.Parse(host)
	if err != nil {
		return false
	}
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

func newGet(io *ui.IO) *cobra.Command {
	var (
		w      who
		output ui.Output
	)
	cmd := &cobra.Command{
		Use:     "users",
		Aliases: []string{"user"},
		Short:   "Show who was given a way into a management cluster",
		Long:    `Show who was given a way into a management cluster with "drover create user". Others, who sign in otherwise, are not known to Drover.`,
		Example: `  drover get users
  drover get users -n team-a -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, _, err := w.open()
			if err != nil {
				return err
			}
			all, err := d.List(cmd.Context(), w.Namespace)
			if err != nil {
				return err
			}
			return output.Print(io.Out, all, func(out stdio.Writer) error { return table(out, all, time.Now()) })
		},
	}
	w.addFlags(cmd, "only users of this `namespace`")
	output.AddFlag(cmd)
	return cmd
}

func table(w stdio.Writer, all []users.User, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "There are no users: make one with `drover create user NAME -n NAMESPACE`.")
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, u := range all {
		rows = append(rows, []string{u.Namespace, u.Name, u.Role, duration.HumanDuration(now.Sub(u.Since.Time))})
	}
	return ui.Table(w, []string{"NAMESPACE", "NAME", "ROLE", "AGE"}, rows)
}

func newDelete(io *ui.IO) *cobra.Command {
	var w who
	cmd := &cobra.Command{
		Use:   "user NAME --namespace NAMESPACE",
		Short: "End somebody's way into a management cluster",
		Long: `End the way into a management cluster that somebody was given with "drover create
user", whatever kubeconfigs they have. Their clusters stay, and so does the namespace.`,
		Example:           `  drover delete user ann -n team-a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: w.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, _, err := w.open()
			if err != nil {
				return err
			}
			if err := d.Remove(cmd.Context(), w.Namespace, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "%s has no way in any more. Clusters that they made stay.\n", args[0])
			return nil
		},
	}
	w.addFlags(cmd, "`namespace` of the user")
	_ = cmd.MarkFlagRequired("namespace")
	return cmd
}

// complete offers the names of users to a shell.
func (w *who) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	d, _, err := w.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := d.List(ctx, w.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, u := range all {
		out = append(out, cobra.CompletionWithDesc(u.Name, u.Role+" in "+u.Namespace))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
