package metal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		rendered, err := c.renderProject(p)
		if err != nil {
			return nil, err
		}
		out.Projects = append(out.Projects, rendered)
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
	p := &store.Project{ID: strings.ToLower(req.ID), Name: req.Name, CustomData: json.RawMessage(req.CustomData), Created: c.now(), Updated: c.now()}
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
	out, err := c.renderProject(p)
	if err != nil {
		return nil, err
	}
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

func (c *call) answerProject(p *store.Project) (*reply, error) {
	out, err := c.renderProject(p)
	if err != nil {
		return nil, err
	}
	return ok(out)
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
	return c.answerProject(p)
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
			p.CustomData = json.RawMessage(req.CustomData)
		}
		p.Updated = c.now()
		return tx.Projects().Put(p)
	})
	if err != nil {
		return nil, notFound(err)
	}
	return c.answerProject(p)
}

// deleteProject deletes a project and everything in it. Devices must be deleted first; those that
// are being deprovisioned finish without their project.
func deleteProject(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	if !c.who.admin {
		return nil, errDenied
	}
	err = c.store.Update(func(tx *store.Tx) error {
		// The index may be behind, so it reads the records.
		kept, err := tx.Devices().All(func(d *store.Device) bool { return d.ProjectID == p.ID && !d.Deleting })
		if err != nil {
			return err
		}
		if len(kept) > 0 {
			return request.Unprocessable("The project still has devices: delete them first")
		}
		return tx.DropProject(p.ID)
	})
	if err != nil {
		return nil, err
	}
	c.faults.Remove(p.ID, "")
	if err := os.Remove(c.home.TokenFile(p.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the token of project %q: %w", p.ID, err)
	}
	return noContent()
}

// renderProject renders a project with its keys. It lists devices only if the caller includes them,
// since there may be thousands.
func (c *call) renderProject(p *store.Project) (api.Project, error) {
	out := c.link().project(p)
	out.Members = []api.Href{{Href: c.user().Href}}
	if c.includes("devices") {
		for _, id := range c.store.Devices().All(store.Query{Project: p.ID}) {
			out.Devices = append(out.Devices, *c.link().href("devices", id))
		}
	}
	err := c.store.View(func(tx *store.Tx) error {
		keys, err := tx.SSHKeys().All(func(k *store.SSHKey) bool { return k.ProjectID == p.ID })
		for _, k := range keys {
			out.SSHKeys = append(out.SSHKeys, *c.link().href("ssh-keys", k.ID))
		}
		return err
	})
	return out, err
}

func (l linker) project(p *store.Project) api.Project {
	return api.Project{
		ID: p.ID, Name: p.Name, Href: l.to("projects", p.ID), CreatedAt: api.At(p.Created), UpdatedAt: api.At(p.Updated),
		CustomData: api.ObjectOf(p.CustomData), Devices: []api.Href{}, SSHKeys: []api.Href{}, Members: []api.Href{}, BackendTransfer: p.BackendTransfer,
		BGPConfig:    &api.Href{Href: l.to("projects", p.ID) + "/bgp-config"},
		Organization: l.href("organizations", organizationID()),
	}
}
