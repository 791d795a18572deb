package metal

import (
	"cmp"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

func listSSHKeys(c *call) (*reply, error) {
	return c.sshKeys(func(k *store.SSHKey) bool { return c.who.admin || k.ProjectID == c.who.project })
}

func listProjectSSHKeys(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.sshKeys(func(k *store.SSHKey) bool { return k.ProjectID == p.ID })
}

// sshKeys lists keys. A search, which some clients call a query, finds them by label, fingerprint
// or key.
func (c *call) sshKeys(match func(*store.SSHKey) bool) (*reply, error) {
	out := api.SSHKeys{SSHKeys: []api.SSHKey{}}
	q := c.r.URL.Query()
	search := strings.ToLower(cmp.Or(q.Get("search"), q.Get("query")))
	err := c.store.View(func(tx *store.Tx) error {
		keys, err := tx.SSHKeys().All(match)
		for _, k := range keys {
			if !strings.Contains(strings.ToLower(k.Label+"\n"+request.Fingerprint(k.Key)+"\n"+k.Key), search) {
				continue
			}
			out.SSHKeys = append(out.SSHKeys, c.link().sshKey(k))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// createSSHKey adds a key to the caller's project, or to all projects.
func createSSHKey(c *call) (*reply, error) { return c.addSSHKey(c.who.project) }

func createProjectSSHKey(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.addSSHKey(p.ID)
}

func (c *call) addSSHKey(project string) (*reply, error) {
	var req api.SSHKeyCreate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := request.CheckSSHKey(req.Label, req.Key); err != nil {
		return nil, err
	}
	k := c.newSSHKey(project, req)
	err := c.store.Update(func(tx *store.Tx) error {
		same, err := tx.SSHKeys().All(func(o *store.SSHKey) bool {
			return o.ProjectID == project && strings.TrimSpace(o.Key) == strings.TrimSpace(k.Key)
		})
		if err != nil {
			return err
		}
		if len(same) > 0 {
			return request.Unprocessable("Key has already been taken")
		}
		if _, err := tx.Projects().Get(project); project != "" && err != nil {
			return err // Deleted since the request began.
		}
		return tx.SSHKeys().Put(k)
	})
	if err != nil {
		return nil, notFound(err)
	}
	return created(c.link().sshKey(k))
}

// newSSHKey keeps the key as it was sent, since clients compare it with their own copy.
func (s *Server) newSSHKey(project string, req api.SSHKeyCreate) *store.SSHKey {
	return &store.SSHKey{
		ID: uuid.NewString(), ProjectID: project, Label: req.Label, Key: req.Key, Tags: req.Tags,
		Created: s.now(), Updated: s.now(),
	}
}

// sshKey returns the key named by the path if the caller may access it.
func (c *call) sshKey(tx *store.Tx) (*store.SSHKey, error) {
	k, err := tx.SSHKeys().Get(strings.ToLower(c.r.PathValue("key")))
	if err != nil {
		return nil, notFound(err)
	}
	if !c.who.admin && k.ProjectID != c.who.project {
		return nil, errNotFound
	}
	return k, nil
}

func getSSHKey(c *call) (*reply, error) {
	var k *store.SSHKey
	err := c.store.View(func(tx *store.Tx) (err error) {
		k, err = c.sshKey(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ok(c.link().sshKey(k))
}

func updateSSHKey(c *call) (*reply, error) {
	var req api.SSHKeyUpdate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	var k *store.SSHKey
	err := c.store.Update(func(tx *store.Tx) (err error) {
		if k, err = c.sshKey(tx); err != nil {
			return err
		}
		set(&k.Label, req.Label)
		set(&k.Key, req.Key)
		set(&k.Tags, req.Tags)
		k.Updated = c.now()
		if err := request.CheckSSHKey(k.Label, k.Key); err != nil {
			return err
		}
		return tx.SSHKeys().Put(k)
	})
	if err != nil {
		return nil, err
	}
	return ok(c.link().sshKey(k))
}

func deleteSSHKey(c *call) (*reply, error) {
	err := c.store.Update(func(tx *store.Tx) error {
		k, err := c.sshKey(tx)
		if err != nil {
			return err
		}
		return tx.SSHKeys().Delete(k.ID)
	})
	if err != nil {
		return nil, err
	}
	return noContent()
}

func (l linker) sshKey(k *store.SSHKey) api.SSHKey {
	out := api.SSHKey{
		ID: k.ID, Label: k.Label, Key: k.Key, Fingerprint: request.Fingerprint(k.Key), Tags: nonNil(k.Tags),
		CreatedAt: api.At(k.Created), UpdatedAt: api.At(k.Updated), Href: l.to("ssh-keys", k.ID),
	}
	out.Owner = l.href("users", userID(""))
	if k.ProjectID != "" {
		out.Owner = l.href("projects", k.ProjectID)
	}
	out.Entity = out.Owner
	return out
}
