package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

const (
	enableTimeout  = 10 * time.Minute
	disableTimeout = 5 * time.Minute
	rotateTimeout  = 15 * time.Minute
)

func newDisable(io *ui.IO) *cobra.Command {
	var t target
	var system string
	var yes bool
	cmd := &cobra.Command{
		Use:   "disable",
		Short: "Disconnect the Git repository and keep all clusters",
		Long: `Disconnect the Git repository from a management plane. This requires an administrator.

Flux stops applying the repository, and the credentials are deleted. All clusters and all
files in the repository stay. On a management cluster, the command also uninstalls Flux,
unless somebody else installed it. It asks for confirmation; without a terminal it requires
--yes.`,
		Example: `  drover gitops disable --yes`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := confirmDisable(io, yes); err != nil {
				return err
			}
			p, err := t.connect()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), disableTimeout)
			defer cancel()
			done, err := p.Disable(ctx, system)
			if err != nil {
				return err
			}
			flux, err := t.installation(io)
			if err != nil {
				return err
			}
			if err := flux.Remove(ctx); err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "The repository is disconnected; %s stay.\n", count(len(done.Clusters), "cluster"))
			return nil
		},
	}
	t.add(cmd, "")
	systemFlag(cmd, &system)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "disconnect without asking")
	return cmd
}

func confirmDisable(io *ui.IO, yes bool) error {
	switch {
	case yes:
		return nil
	case !io.CanAsk:
		return errors.New("disconnecting the repository requires confirmation: use --yes")
	}
	sure, err := io.Confirm("Changes in Git will no longer be applied.")
	if err == nil && !sure {
		err = errors.New("canceled, nothing was changed")
	}
	return err
}

func newConfirm(io *ui.IO) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "confirm NAME",
		Short: "Confirm the deletion of a cluster that was removed from Git",
		Long: `Confirm that a cluster whose files were removed from Git is to be deleted, with its
machines and all data on them. A cluster in use is not deleted before that, because its
files may have disappeared by mistake. To keep the cluster, restore the files instead.`,
		Example:           `  drover gitops confirm one -n team-a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := t.connect()
			if err != nil {
				return err
			}
			cluster, err := p.Confirm(cmd.Context(), t.namespace, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "Confirmed. Flux deletes cluster %s; follow it with `drover events cluster %s`.\n", cluster.Name, cluster.Name)
			return nil
		},
	}
	t.add(cmd, "`namespace` of the cluster (default: search all)")
	return cmd
}

func newRotateKey(io *ui.IO) *cobra.Command {
	var t target
	r := gitops.Rotation{Getenv: os.Getenv}
	timeout := rotateTimeout
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Replace the credentials of the Git repository",
		Long: `Replace the credentials of the connected Git repository. This requires an administrator.

For a repository with an SSH URL, the command generates a key, prints its public half and
waits until the Git server accepts it: add it with write access, for example as a deploy
key. For HTTPS, it reads a new token from the environment variables of "drover gitops
enable". The old credentials stay in use until the new ones work.

The key that signs commits stays, unless DROVER_GIT_SIGNING_KEY names another one.`,
		Example: `  drover gitops rotate-key
  drover gitops rotate-key --algorithm rsa --timeout 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(gitops.Algorithms(), r.Algorithm) {
				return ui.Usagef("--algorithm %q: use one of %s", r.Algorithm, strings.Join(gitops.Algorithms(), ", "))
			}
			p, err := t.connect()
			if err != nil {
				return err
			}
			r.Publish = func(public []byte) {
				fmt.Fprintf(io.Out, "%s", public)
				fmt.Fprintln(io.Err, "Waiting for the Git server to accept this key. Add it to the repository with write access.")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			url, err := p.Rotate(ctx, r)
			if err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "The credentials of %s are replaced. Remove the old ones from the Git server.\n", url)
			return nil
		},
	}
	t.add(cmd, "")
	systemFlag(cmd, &r.System)
	f := cmd.Flags()
	f.StringVar(&r.Algorithm, "algorithm", gitops.Algorithms()[0], "`algorithm` of a new SSH key: "+strings.Join(gitops.Algorithms(), ", "))
	f.DurationVar(&timeout, "timeout", rotateTimeout, "how long to wait for the Git server to accept a new SSH key")
	_ = cmd.RegisterFlagCompletionFunc("algorithm", cobra.FixedCompletions(gitops.Algorithms(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
