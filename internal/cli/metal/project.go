package metal

import (
	"context"
	"fmt"
	stdio "io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
)

func newProject(io *ui.IO, home *homeFlag) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "project",
		Short: "Make and list projects",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProjectCreate(io, home), newProjectList(io, home))
	return cmd
}

func newProjectCreate(io *ui.IO, home *homeFlag) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a project with a token of its own",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return createProject(cmd.Context(), io, home, api.ProjectCreate{ID: id, Name: args[0]})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "`UUID` of the project, for manifests that name one (default: a new one)")
	return cmd
}

func createProject(ctx context.Context, io *ui.IO, home *homeFlag, req api.ProjectCreate) error {
	h, c, err := home.open()
	if err != nil {
		return err
	}
	var p api.Project
	if err := c.Do(ctx, http.MethodPost, "/projects", req, &p); err != nil {
		return fmt.Errorf("creating project %q: %w", req.Name, err)
	}
	fmt.Fprintln(io.Out, p.ID)
	fmt.Fprintf(io.Err, "The token of the project is in %s.\n", h.TokenFile(p.ID))
	return nil
}

func newProjectList(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List projects",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, c, err := home.open()
			if err != nil {
				return err
			}
			projects, err := c.Projects(cmd.Context())
			if err != nil {
				return err
			}
			return output.Print(io.Out, projects, func(w stdio.Writer) error { return projectTable(w, projects) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func projectTable(w stdio.Writer, projects []api.Project) error {
	rows := make([][]string, 0, len(projects))
	for _, p := range projects {
		rows = append(rows, []string{p.Name, p.ID, p.CreatedAt.Format("2006-01-02 15:04")})
	}
	return ui.Table(w, []string{"NAME", "ID", "CREATED"}, rows)
}

func newToken(io *ui.IO, home *homeFlag) *cobra.Command {
	var admin bool
	cmd := &cobra.Command{
		Use:   "token [PROJECT]",
		Short: "Print the token of a project, by name or id",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, c, err := home.open()
			if err != nil {
				return err
			}
			token, err := findToken(cmd.Context(), h, c, append(args, metal.DefaultProject)[0], admin)
			if err != nil {
				return err
			}
			fmt.Fprintln(io.Out, token)
			return nil
		},
	}
	cmd.Flags().BoolVar(&admin, "admin", false, "print the token for all projects")
	return cmd
}

func findToken(ctx context.Context, h metal.Home, c *client.Client, name string, admin bool) (string, error) { //nolint:revive // A flag of the command.
	if admin {
		return h.AdminToken()
	}
	projects, err := c.Projects(ctx)
	if err != nil {
		return "", err
	}
	for _, p := range projects {
		if p.Name == name || p.ID == name {
			return h.Token(p.ID)
		}
	}
	return "", fmt.Errorf("there is no project %q: see `drover metal project list`", name)
}

func (f *homeFlag) open() (metal.Home, *client.Client, error) {
	h, err := f.home()
	if err != nil {
		return h, nil, err
	}
	c, err := client.Open(h)
	return h, c, err
}
