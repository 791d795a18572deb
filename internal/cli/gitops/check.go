package gitops

import (
	"cmp"
	"context"
	"fmt"
	stdio "io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

// checked is what to check: a directory, or a branch of a repository.
type checked struct {
	dir                  string
	remote, branch, path string
	output               ui.Output
}

func newCheck(io *ui.IO) *cobra.Command {
	c := &checked{}
	cmd := &cobra.Command{
		Use:   "check [DIR | --remote URL]",
		Short: "Validate cluster specs in Git and find secrets",
		Long: `Validate every cluster spec below a directory, and find secrets that must not be
committed. Problems are printed with their files and lines. The command contacts no
management plane. It exits with 1 if there is a problem, for example in a pull request
check.

With --remote, it checks the newest commit of a branch. Credentials come from the same
environment variables as those of "drover gitops enable".`,
		Example: `  drover gitops check
  drover gitops check clusters/mgmt -o json
  drover gitops check --remote https://git.example.com/fleet.git --path clusters/mgmt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.dir = args[0]
			}
			return c.run(cmd.Context(), io)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.remote, "remote", "", "`URL` of a repository to check instead of a directory")
	f.StringVar(&c.branch, "branch", "", "`branch` of the repository (default: main)")
	f.StringVar(&c.path, "path", "", "`directory` of the repository (default: all)")
	c.output.AddFlag(cmd)
	return cmd
}

func (c *checked) run(ctx context.Context, io *ui.IO) error {
	if c.remote != "" && c.dir != "" {
		return ui.Usagef("specify either a directory or --remote, not both")
	}
	if c.remote == "" && (c.branch != "" || c.path != "") {
		return ui.Usagef("--branch and --path require --remote")
	}
	source, err := c.source(ctx)
	if err != nil {
		return err
	}
	verdict, err := gitops.Check(source)
	if err != nil {
		return err
	}
	c.locate(verdict)
	if err := c.output.Print(io.Out, verdict, func(w stdio.Writer) error { return printVerdict(w, verdict) }); err != nil || verdict.Valid() {
		return err
	}
	return ui.Silent(ui.ExitFailed)
}

func (c *checked) source(ctx context.Context) (gitops.Source, error) {
	if c.remote == "" {
		return gitops.Directory(cmp.Or(c.dir, "."))
	}
	spec := anywherev1.FluxConfigSpec{Branch: c.branch, Git: &anywherev1.GitProviderConfig{RepositoryURL: c.remote}}
	remote, err := flux.FromEnvironment(spec, os.Getenv)
	if err != nil {
		return gitops.Source{}, err
	}
	return gitops.Remote(ctx, remote, cmp.Or(c.path, "."))
}

// locate makes the names of files relative to the working directory, so that terminals and editors
// find them.
func (c *checked) locate(v *gitops.Verdict) {
	if c.dir == "" {
		return
	}
	for i := range v.Problems {
		v.Problems[i].File = filepath.Join(c.dir, v.Problems[i].File)
	}
	for i := range v.Secrets {
		v.Secrets[i].File = filepath.Join(c.dir, v.Secrets[i].File)
	}
}

func printVerdict(w stdio.Writer, v *gitops.Verdict) error {
	for _, p := range v.Problems {
		fmt.Fprintln(w, p)
	}
	for _, s := range v.Secrets {
		fmt.Fprintf(w, "%s must not be in Git\n", s)
	}
	if v.Valid() {
		_, err := fmt.Fprintf(w, "%s, no problems found.\n", count(v.Clusters, "cluster"))
		return err
	}
	_, err := fmt.Fprintf(w, "%s, %s found.\n", count(v.Clusters, "cluster"), count(len(v.Problems)+len(v.Secrets), "problem"))
	return err
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
