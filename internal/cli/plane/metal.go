package plane

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	metalcli "github.com/drover-dev/drover/internal/cli/metal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/service"
)

// useMetal has metal run, and leaves in the environment where it is and how to
// get in: the supervisor and the manager inherit both, and nobody else on the
// machine can read them, as they could arguments.
func (o *upOptions) useMetal(ctx context.Context, io *ui.IO) error {
	if o.metal == "" {
		return nil
	}
	if names := metalcli.DriverNames(); !slices.Contains(names, o.metal) {
		return ui.Usagef("--metal %q is no driver: use one of %s", o.metal, strings.Join(names, ", "))
	}
	home := metal.Home{Dir: metal.DefaultHome()}
	endpoint, err := service.Ensure(ctx, service.Options{Home: home, Driver: o.metal})
	if err != nil {
		return err
	}
	project, token, err := defaultProject(ctx, home, endpoint)
	if err != nil {
		return err
	}
	if err := os.Setenv("METAL_API_URL", endpoint.URL+"/metal/v1"); err != nil {
		return fmt.Errorf("setting METAL_API_URL: %w", err)
	}
	if err := os.Setenv("PACKET_API_KEY", token); err != nil {
		return fmt.Errorf("setting PACKET_API_KEY: %w", err)
	}
	fmt.Fprintf(io.Err, "Metal serves machines of driver %s at %s; its project is %s.\n\n", endpoint.Driver, endpoint.URL, project)
	return nil
}

func defaultProject(ctx context.Context, home metal.Home, e metal.Endpoint) (id, token string, err error) {
	c, err := client.Open(home)
	if err != nil {
		return "", "", err
	}
	projects, err := c.Projects(ctx)
	if err != nil {
		return "", "", fmt.Errorf("listing metal's projects: %w", err)
	}
	for _, p := range projects {
		if p.Name == metal.DefaultProject {
			token, err = home.Token(p.ID)
			return p.ID, token, err
		}
	}
	return "", "", fmt.Errorf("metal at %s has no project %q: make one with `drover metal project create`", e.URL, metal.DefaultProject)
}
