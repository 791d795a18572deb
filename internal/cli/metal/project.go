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
		Short: "Create and list projects, and set their quotas",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProjectCreate(io, home), newProjectList(io, home), newProjectQuota(io, home))
	return cmd
}

func newProjectCreate(io *ui.IO, home *homeFlag) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a project with its own token",
		Long: `Create a project and print its ID. A token for the project is stored in the home of
the metal service; print it with "drover metal token".`,
		Example: `  drover metal project create team-a`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return createProject(cmd.Context(), io, home, api.ProjectCreate{ID: id, Name: args[0]})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "`UUID` of the project, for manifests that already name one (default: random)")
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
	fmt.Fprintf(io.Err, "Wrote the token of the project to %s.\n", h.TokenFile(p.ID))
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
	var isAdmin bool
	cmd := &cobra.Command{
		Use:   "token [PROJECT]",
		Short: "Print the token of a project",
		Long: `Print the token of a project, given by name or ID. Without a project, print the token
of the project "default".`,
		Example: `  export METAL_AUTH_TOKEN=$(drover metal token)`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, c, err := home.open()
			if err != nil {
				return err
			}
			token, err := findToken(cmd.Context(), h, c, append(args, metal.DefaultProject)[0], isAdmin)
			if err != nil {
				return err
			}
			fmt.Fprintln(io.Out, token)
			return nil
		},
	}
	cmd.Flags().BoolVar(&isAdmin, "admin", false, "print the administrator's token, which is valid for all projects")
	return cmd
}

func findToken(ctx context.Context, h metal.Home, c *admin.Client, name string, isAdmin bool) (string, error) { //nolint:revive // A flag of the command.
	if isAdmin {
		return h.AdminToken()
	}
	p, err := findProject(ctx, c, name)
	if err != nil {
		return "", err
	}
	return h.Token(p.ID)
}

// findProject returns a project by its name or ID.
func findProject(ctx context.Context, c *admin.Client, name string) (api.Project, error) {
	projects, err := c.Projects(ctx)
	if err != nil {
		return api.Project{}, err
	}
	for _, p := range projects {
		if p.Name == name || p.ID == name {
			return p, nil
		}
	}
	return api.Project{}, fmt.Errorf("project %q not found: list projects with `drover metal project list`", name)
}

func (f *homeFlag) open() (metal.Home, *admin.Client, error) {
	h, err := f.home()
	if err != nil {
		return h, nil, err
	}
	c, err := admin.Open(h)
	return h, c, err
}
