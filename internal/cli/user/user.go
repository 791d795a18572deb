// Package user implements the commands that manage the users of a management cluster.
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

// AddCommands adds the commands below their verbs.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	verb.Of(root, group, "create").AddCommand(newCreate(io))
	verb.Of(root, group, "get").AddCommand(newGet(io))
	verb.Of(root, group, "delete").AddCommand(newDelete(io))
}

// target is a user on a management plane.
type target struct {
	plane management.Flags
	users.User
}

// creation is a user to create and the kubeconfig to write.
type creation struct {
	target

	valid time.Duration
	file  string
	// machines opens local machines to the namespace.
	machines bool
}

func (t *target) addFlags(cmd *cobra.Command, namespace string) {
	t.plane.Add(cmd.Flags())
	cmd.Flags().StringVarP(&t.Namespace, "namespace", "n", "", namespace)
	_ = cmd.MarkFlagFilename("kubeconfig")
}

func (t *target) open() (*users.Directory, string, error) {
	cfg, err := t.plane.Config()
	if err != nil {
		return nil, "", err
	}
	d, err := users.Open(cfg)
	return d, cfg.Host, err
}

func newCreate(io *ui.IO) *cobra.Command {
	var c creation
	cmd := &cobra.Command{
		Use:   "user NAME --namespace NAMESPACE",
		Short: "Create a user of a management cluster and get the kubeconfig",
		Long: `Create a user of a management cluster, and print a kubeconfig for the user or write
it to a file. The kubeconfig contains a token: treat it as a secret.

A creator can create, upgrade and delete clusters in one namespace, and install
packages on them. The namespace is created if necessary. A viewer can only read.
Neither can read credentials of machines or objects in other namespaces.

A creator can use the credentials that an administrator opened to the namespace, but
machines of this host only with --local-machines. Such machines share the kernel of the
host, and a creator is root on them: grant it only to people whom you trust with root
on the host. It holds for all clusters of the namespace.

Run the command again for a new kubeconfig. Earlier kubeconfigs remain valid until
they expire or the user is deleted. With an identity provider, such as OIDC, do not
create users: bind the roles to the identities instead.`,
		Example: `  drover create user creator -n team-a > creator.kubeconfig
  drover create user developer -n team-b --local-machines -o developer.kubeconfig
  drover create user viewer -n team-a --role viewer --valid 720h -o viewer.kubeconfig -k mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Name = args[0]
			return c.run(cmd.Context(), io)
		},
	}
	c.addFlags(cmd, "`namespace` of the user's clusters")
	f := cmd.Flags()
	f.StringVar(&c.Role, "role", "creator", "role of the user: "+strings.Join(users.Roles(), " or "))
	f.DurationVar(&c.valid, "valid", 24*time.Hour, "lifetime of the kubeconfig")
	f.BoolVar(&c.machines, "local-machines", false, "let clusters of the namespace use machines of this host, which trusts their creators with root on it")
	f.StringVarP(&c.file, "output", "o", "", "write the kubeconfig to this `file`, readable only by its owner")
	_ = cmd.MarkFlagRequired("namespace")
	_ = cmd.MarkFlagFilename("output")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(users.Roles(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// run creates the user and delivers the kubeconfig.
func (c *creation) run(ctx context.Context, io *ui.IO) error {
	if err := c.Check(); err != nil {
		return ui.Usage(err)
	}
	if c.machines && c.Role != "creator" {
		return ui.Usagef("--local-machines requires --role creator")
	}
	if c.valid < users.Shortest {
		return ui.Usagef("--valid %s is too short; the minimum is %s", c.valid, users.Shortest)
	}
	d, host, err := c.open()
	if err != nil {
		return err
	}
	if c.file != "" {
		if err := c.origin(host).MayWrite(c.file); err != nil {
			return err
		}
	}
	if c.machines {
		if err := d.OpenLocalMachines(ctx, c.Namespace); err != nil {
			return err
		}
	}
	if err := d.Add(ctx, c.User); err != nil {
		return err
	}
	if err := c.deliver(ctx, io, d, host); err != nil {
		return err
	}
	if c.Role == "creator" {
		fmt.Fprint(io.Err, c.trust(d.LocalMachines(ctx, c.Namespace)))
	}
	return nil
}

// trust describes what a creator may do with local machines.
func (c *creation) trust(machines users.Machines) string {
	switch machines {
	case users.MachinesOpen:
		return fmt.Sprintf("Creators in namespace %s can use machines of this host, which trusts them with root on it.\n", c.Namespace)
	case users.MachinesClosed:
		return fmt.Sprintf("Creators in namespace %s can't use machines of this host. To allow it, which trusts them with root on the host, add --local-machines.\n", c.Namespace)
	}
	return ""
}

// origin identifies kubeconfigs of the user.
func (c *creation) origin(host string) kubeconfig.Origin {
	return kubeconfig.Origin{Plane: host, Namespace: c.Namespace, Cluster: "user " + c.Name}
}

// deliver prints or writes a new kubeconfig.
func (c *creation) deliver(ctx context.Context, io *ui.IO, d *users.Directory, host string) error {
	config, until, err := d.Kubeconfig(ctx, c.User, c.valid)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	k, err := kubeconfig.Parse(data, c.origin(host), "")
	if err != nil {
		return err
	}
	if c.file != "" {
		err = k.Write(c.file)
	} else if data, err = k.Encode(); err == nil {
		_, err = io.Out.Write(data)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "User %s has the role %s in namespace %s. The kubeconfig expires on %s.\n", c.Name, c.Role, c.Namespace, until.Local().Format(time.DateTime))
	if isLoopback(host) {
		fmt.Fprintf(io.Err, "It works only on this machine, because the API server listens on %s.\n", host)
	}
	return nil
}

// isLoopback reports whether a URL points to this machine.
func isLoopback(host string) bool {
	u, err := url.Parse(host)
	if err != nil {
		return false
	}
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

func newGet(io *ui.IO) *cobra.Command {
	var (
		t      target
		output ui.Output
	)
	cmd := &cobra.Command{
		Use:     "users",
		Aliases: []string{"user"},
		Short:   "List users of a management cluster",
		Long:    `List the users that "drover create user" created. Drover does not know the users of an identity provider.`,
		Example: `  drover get users
  drover get users -n team-a -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, _, err := t.open()
			if err != nil {
				return err
			}
			all, err := d.List(cmd.Context(), t.Namespace)
			if err != nil {
				return err
			}
			return output.Print(io.Out, all, func(out stdio.Writer) error { return table(out, all, time.Now()) })
		},
	}
	t.addFlags(cmd, "only users of this `namespace`")
	output.AddFlag(cmd)
	return cmd
}

func table(w stdio.Writer, all []users.User, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No users found. Create one with `drover create user NAME -n NAMESPACE`.")
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, u := range all {
		rows = append(rows, []string{u.Namespace, u.Name, u.Role, duration.HumanDuration(now.Sub(u.Since.Time))})
	}
	return ui.Table(w, []string{"NAMESPACE", "NAME", "ROLE", "AGE"}, rows)
}

func newDelete(io *ui.IO) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "user NAME --namespace NAMESPACE",
		Short: "Delete a user of a management cluster",
		Long: `Delete a user that "drover create user" created, and invalidate all kubeconfigs of
the user. The clusters and the namespace of the user remain.`,
		Example:           `  drover delete user creator -n team-a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, _, err := t.open()
			if err != nil {
				return err
			}
			if err := d.Remove(cmd.Context(), t.Namespace, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "Deleted user %s. The clusters of the user remain.\n", args[0])
			return nil
		},
	}
	t.addFlags(cmd, "`namespace` of the user")
	_ = cmd.MarkFlagRequired("namespace")
	return cmd
}

// complete completes names of users in a shell.
func (t *target) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	d, _, err := t.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := d.List(ctx, t.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, u := range all {
		out = append(out, cobra.CompletionWithDesc(u.Name, u.Role+" in "+u.Namespace))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
