package metal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

func listProjects(c *call) (*reply, error) {
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	var all []*store.Project
	err = c.store.View(func(tx *store.Tx) (err error) {
		all, err = tx.Projects().All(func(p *store.Project) bool { return c.who.mayUse(p.ID) })
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *store.Project) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	out := api.Projects{Projects: []api.Project{}, Meta: pg.meta(len(all))}
	for _, p := range slice(pg, all) {
		out.Projects = append(out.Projects, c.link().project(p))
	}
	return ok(out)
}

// createProject creates a project and a token, which only this response contains.
func createProject(c *call) (*reply, error) {
	if !c.who.admin {
		return nil, errDenied
	}
	var req api.ProjectCreate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.Name) == "" {
		return nil, request.Unprocessable("Name can't be blank")
	}
	if req.ID == "" {
		req.ID = uuid.NewString()
	}
	if _, err := uuid.Parse(req.ID); err != nil {
		return nil, request.Unprocessable("id must be a UUID")
	}
	p := &store.Project{ID: strings.ToLower(req.ID), Name: req.Name, CustomData: req.CustomData, Created: c.now(), Updated: c.now()}
	token := newToken()
	// The file comes first: a token that is in no file is useless, a file without a project is
	// harmless.
	if err := c.keepToken(p.ID, token); err != nil {
		return nil, err
	}
	err := c.store.Update(func(tx *store.Tx) error {
		if _, err := tx.Projects().Get(p.ID); err == nil {
			return request.Unprocessable("A project with the ID " + p.ID + " already exists")
		}
		if err := c.putToken(tx, token, p.ID); err != nil {
			return err
		}
		return tx.Projects().Put(p)
	})
	if err != nil {
		return nil, err
	}
	out := c.link().project(p)
	out.Token = token
	return created(out)
}

// keepToken writes a token to the file that `drover metal token` reads, unless the file exists.
func (s *Server) keepToken(project, token string) error {
	if _, err := s.home.Token(project); err == nil {
		return nil
	}
	return atomicfile.Write(s.home.TokenFile(project), []byte(token+"\n"), 0o600)
}

// createToken creates another token for a project.
func createToken(c *call) (*reply, error) {
	if !c.who.admin {
		return nil, errDenied
	}
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	token := newToken()
	if err := c.store.Update(func(tx *store.Tx) error { return c.putToken(tx, token, p.ID) }); err != nil {
		return nil, err
	}
	return created(map[string]string{"token": token})
}

func getProject(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return ok(c.link().project(p))
}

func updateProject(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	var req api.ProjectUpdate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.Name != nil && strings.TrimSpace(*req.Name) == "" {
		return nil, request.Unprocessable("Name can't be blank")
	}
	err = c.store.Update(func(tx *store.Tx) (err error) {
		if p, err = tx.Projects().Get(p.ID); err != nil {
			return err
		}
		set(&p.Name, req.Name)
		set(&p.BackendTransfer, req.BackendTransfer)
		if req.CustomData != nil {
			p.CustomData = req.CustomData
		}
		p.Updated = c.now()
		return tx.Projects().Put(p)
	})
	if err != nil {
		return nil, notFound(err)
	}
	return ok(c.link().project(p))
}

// deleteProject deletes an empty project.
func deleteProject(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	if !c.who.admin {
		return nil, errDenied
	}
	if c.store.Devices().Count(store.Query{Project: p.ID}) > 0 || c.store.Blocks().Count(store.Query{Project: p.ID}) > 0 {
		return nil, request.Unprocessable("The project still has devices or addresses")
	}
	err = c.store.Update(func(tx *store.Tx) error {
		tokens, err := tx.Tokens().All(func(t *store.Token) bool { return t.Project == p.ID })
		if err != nil {
			return err
		}
		for _, t := range tokens {
			if err := tx.Tokens().Delete(t.Hash); err != nil {
				return err
			}
		}
		return tx.Projects().Delete(p.ID)
	})
	if err != nil {
		return nil, err
	}
	return noContent()
}

func (l linker) project(p *store.Project) api.Project {
	return api.Project{
		ID: p.ID, Name: p.Name, Href: l.to("projects", p.ID), CreatedAt: api.At(p.Created), UpdatedAt: api.At(p.Updated),
		CustomData: orEmpty(p.CustomData), Devices: []api.Href{}, SSHKeys: []api.Href{}, Members: []api.Href{}, BackendTransfer: p.BackendTransfer,
		BGPConfig: &api.Href{Href: l.to("projects", p.ID) + "/bgp-config"},
	}
}
