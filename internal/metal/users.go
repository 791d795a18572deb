package metal

import (
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/store"
)

// The service has tokens instead of accounts. To clients, the holder of a token is a user: one per
// project, and the administrator. All projects belong to one organization.

// userID returns the ID of the user of a project, or of the administrator.
func userID(project string) string { return catalog.ID("user", project) }

func emailID(user string) string { return catalog.ID("email", user) }

func organizationID() string { return catalog.ID("organization", "") }

// user describes the caller.
func (c *call) user() api.User {
	name, project := "Administrator", c.who.project
	if !c.who.admin {
		name = "Project"
	}
	id := userID(project)
	u := api.User{
		ID: id, ShortID: id[:8], FirstName: name, FullName: name, Email: emailOf(id), DefaultOrganizationID: organizationID(),
		Emails: []api.Href{*c.link().href("emails", emailID(id))}, Href: c.link().to("users", id),
	}
	if project != "" {
		u.DefaultProjectID = &project
	}
	return u
}

// emailOf returns an address that reaches nobody.
func emailOf(user string) string { return user + "@drover.invalid" }

func getCurrentUser(c *call) (*reply, error) { return ok(c.user()) }

// listUsers lists the caller only.
func listUsers(c *call) (*reply, error) {
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	return ok(api.Users{Users: slice(pg, []api.User{c.user()}), Meta: pg.meta(1)})
}

func getUser(c *call) (*reply, error) {
	if u := c.user(); strings.EqualFold(u.ID, c.r.PathValue("user")) {
		return ok(u)
	}
	return nil, errNotFound
}

func getEmail(c *call) (*reply, error) {
	u := c.user()
	id := emailID(u.ID)
	if !strings.EqualFold(id, c.r.PathValue("email")) {
		return nil, errNotFound
	}
	return ok(api.Email{ID: id, Address: u.Email, Default: true, Verified: true, Href: c.link().to("emails", id)})
}

// organization describes the one organization, with the projects that the caller may access.
func (c *call) organization() (api.Organization, error) {
	out := api.Organization{
		ID: organizationID(), Name: "Drover", Members: []api.Href{{Href: c.user().Href}}, Projects: []api.Href{},
		Href: c.link().to("organizations", organizationID()),
	}
	err := c.store.View(func(tx *store.Tx) error {
		projects, err := tx.Projects().All(func(p *store.Project) bool { return c.who.mayUse(p.ID) })
		for _, p := range projects {
			out.Projects = append(out.Projects, *c.link().href("projects", p.ID))
		}
		return err
	})
	return out, err
}

func listOrganizations(c *call) (*reply, error) {
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	o, err := c.organization()
	if err != nil {
		return nil, err
	}
	return ok(api.Organizations{Organizations: slice(pg, []api.Organization{o}), Meta: pg.meta(1)})
}

func getOrganization(c *call) (*reply, error) {
	o, err := c.organization()
	if err != nil {
		return nil, err
	}
	return ok(o)
}

// ofOrganization rejects other organizations before it serves a request.
func ofOrganization(handle func(*call) (*reply, error)) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) {
		if !strings.EqualFold(c.r.PathValue("organization"), organizationID()) {
			return nil, errNotFound
		}
		return handle(c)
	}
}
