package metal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// call is a request of an authenticated client.
type call struct {
	*Server
	r   *http.Request
	who identity
	// base is the path prefix that the client uses.
	base string
}

// identity is what a token grants access to: one project, or all of them.
type identity struct {
	project string
	admin   bool
}

// mayUse reports whether the caller may access a project.
func (i identity) mayUse(project string) bool {
	return i.admin || i.project == project && project != ""
}

// identify authenticates the caller.
func (s *Server) identify(r *http.Request) (identity, error) {
	token := r.Header.Get("X-Auth-Token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && token == "" {
		token = bearer
	}
	if token == "" {
		return identity{}, errToken
	}
	var who identity
	err := s.store.View(func(tx *store.Tx) error {
		t, err := tx.Tokens().Get(hashToken(token))
		if err != nil {
			return err
		}
		who = identity{project: t.Project, admin: t.Project == ""}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return who, errToken
	}
	return who, err
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// decode reads the request body, if there is one, into v.
func (c *call) decode(v any) error { return request.Decode(c.r.Body, v) }

// project returns the project named by the path if the caller may access it.
func (c *call) project() (*store.Project, error) {
	id := strings.ToLower(c.r.PathValue("project"))
	if !c.who.mayUse(id) {
		return nil, errDenied
	}
	var p *store.Project
	err := c.store.View(func(tx *store.Tx) (err error) {
		p, err = tx.Projects().Get(id)
		return err
	})
	return p, notFound(err)
}

// device returns the device named by the path if the caller may access it. Devices of other
// projects are reported as not found.
func (c *call) device() (*store.Device, error) {
	id := strings.ToLower(c.r.PathValue("device"))
	var d *store.Device
	err := c.store.View(func(tx *store.Tx) (err error) {
		d, err = tx.Devices().Get(id)
		if errors.Is(err, store.ErrNotFound) {
			return c.vanished(tx, id)
		}
		return err
	})
	if err != nil {
		return nil, notFound(err)
	}
	if !c.who.mayUse(d.ProjectID) {
		return nil, errNotFound
	}
	return d, nil
}

// vanished returns the response for a device that was removed after failing to provision.
func (c *call) vanished(tx *store.Tx, id string) error {
	g, err := tx.Gone().Get(id)
	if err != nil {
		return err
	}
	if g.Status == http.StatusForbidden && c.who.mayUse(g.ProjectID) {
		return request.Refuse(http.StatusForbidden, "You are not authorized to view this device")
	}
	return errNotFound
}

// notFound translates the store's not-found error into that of the API.
func notFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return errNotFound
	}
	return err
}
