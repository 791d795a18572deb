package metal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// maxServersInInventory bounds the inventory, since a claim reads all of it.
const maxServersInInventory = 5000

// ofInventory admits administrators, where the driver uses the inventory.
func ofInventory(handle func(*call) (*reply, error)) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) {
		if !c.who.admin {
			return nil, errDenied
		}
		if _, ok := c.driver.(driver.Inspector); !ok {
			return nil, request.Unprocessable("This metal service has no inventory: its driver makes machines itself. Start one with `drover metal serve --driver server`")
		}
		return handle(c)
	}
}

// apiServer returns a server as clients see it, with its user and without secrets.
func apiServer(tx *store.Tx, s *inventory.Server) (api.Server, error) {
	out := api.Server{Server: *s, EffectivePlan: s.EffectivePlan(), HasSecrets: len(s.Sealed) > 0}
	out.Sealed = nil
	if !s.Held() {
		return out, nil
	}
	d, err := tx.Devices().Get(s.DeviceID)
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	owner := tags.OwnerOf(d.Tags)
	out.User = &api.ServerUser{Hostname: d.Hostname, State: d.State, Namespace: owner.Namespace, Cluster: owner.Cluster}
	return out, nil
}

// okServer responds with a server.
func (c *call) okServer(s *inventory.Server) (*reply, error) {
	var out api.Server
	err := c.store.View(func(tx *store.Tx) (err error) {
		out, err = apiServer(tx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

func listServers(c *call) (*reply, error) {
	out := api.Servers{Servers: []api.Server{}}
	err := c.store.View(func(tx *store.Tx) error {
		all, err := tx.AllServers()
		if err != nil {
			return err
		}
		for _, s := range all {
			shown, err := apiServer(tx, s)
			if err != nil {
				return err
			}
			out.Servers = append(out.Servers, shown)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// server returns the server that the path names.
func (c *call) server(tx *store.Tx) (*inventory.Server, error) {
	name := strings.ToLower(c.r.PathValue("server"))
	s, err := tx.ServerNamed(name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, request.Refuse(http.StatusNotFound, "Server %q not found", name)
	}
	return s, err
}

// findServer returns the server that the path names.
func (c *call) findServer() (s *inventory.Server, err error) {
	err = c.store.View(func(tx *store.Tx) (err error) {
		s, err = c.server(tx)
		return err
	})
	return s, err
}

func getServer(c *call) (*reply, error) {
	s, err := c.findServer()
	if err != nil {
		return nil, err
	}
	return c.okServer(s)
}

// importServers adds and updates servers, all or none.
func importServers(c *call) (*reply, error) {
	var req api.ServerImport
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	var out api.ServerImportResult
	var changed []string
	err := c.store.Update(func(tx *store.Tx) (err error) {
		out, changed, err = c.importAll(tx, req)
		if err == nil && (req.DryRun || len(out.Problems) > 0) {
			return errUnchanged
		}
		return err
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return nil, err
	}
	if err == nil {
		for _, id := range changed {
			c.inspections.queue.Add(id)
		}
	}
	return ok(out)
}

func (c *call) importAll(tx *store.Tx, req api.ServerImport) (out api.ServerImportResult, changed []string, err error) {
	all, err := tx.AllServers()
	if err != nil {
		return out, nil, err
	}
	if len(all)+len(req.Servers) > maxServersInInventory {
		return out, nil, request.Unprocessable(fmt.Sprintf("The inventory has at most %d servers", maxServersInInventory))
	}
	for n, e := range req.Servers {
		s, isNew, problems := c.apply(all, e, req)
		if len(problems) == 0 {
			problems, err = c.checkProject(tx, e.Spec)
		}
		for _, p := range problems {
			out.Problems = append(out.Problems, api.ServerProblem{Index: n, Message: p})
		}
		switch {
		case err != nil:
			return out, nil, err
		case len(problems) > 0:
			continue
		case isNew:
			out.Added = append(out.Added, s.Name)
			all = append(all, s)
			if s.Seq, err = tx.Sequence(); err != nil {
				return out, nil, err
			}
		default:
			out.Updated = append(out.Updated, s.Name)
		}
		if err := c.putServer(tx, s); err != nil {
			return out, nil, err
		}
		if s.State == inventory.Discovered {
			changed = append(changed, s.ID)
		}
	}
	return out, changed, nil
}

// apply makes a server of an entry, or changes the one of that name.
func (c *call) apply(all []*inventory.Server, e inventory.Entry, req api.ServerImport) (s *inventory.Server, isNew bool, problems []string) {
	problems = append(e.Check(), e.Conflicts(all)...)
	i := slices.IndexFunc(all, func(s *inventory.Server) bool { return s.Name == e.Name })
	switch {
	case i >= 0 && req.New:
		return nil, false, append(problems, fmt.Sprintf("server %q exists; change it with `drover server edit %[1]s`", e.Name))
	case i >= 0:
		s = all[i]
		e.Spec = s.Merged(e.Spec)
	default:
		s, isNew = &inventory.Server{ID: uuid.NewString(), Created: c.now(), Status: inventory.Status{State: inventory.Discovered, Since: c.now()}}, true
	}
	if len(problems) > 0 {
		return nil, false, problems
	}
	if err := c.write(s, e); err != nil {
		return nil, false, []string{err.Error()}
	}
	return s, isNew, nil
}

// write replaces the spec of a server, and the secrets that the entry has.
func (c *call) write(s *inventory.Server, e inventory.Entry) error {
	secrets, err := c.sealer.Open(s.ID, s.Sealed)
	if err != nil {
		secrets = driver.Secrets{} // They are being replaced.
	}
	secrets = inventory.MergeSecrets(secrets, e.Secrets)
	if e.BMC != nil && secrets.BMCPassword == "" {
		return errors.New("bmc_ip, bmc_username and bmc_password must be set together")
	}
	if err := s.Edit(e.Spec, c.now()); err != nil {
		return err
	}
	s.Sealed, err = c.sealer.Seal(s.ID, secrets)
	return err
}

// checkProject returns whether the project that a server is reserved for is missing.
func (c *call) checkProject(tx *store.Tx, spec inventory.Spec) ([]string, error) {
	if spec.Project == "" {
		return nil, nil
	}
	_, err := tx.Projects().Get(spec.Project)
	if errors.Is(err, store.ErrNotFound) {
		return []string{fmt.Sprintf("project %.80q not found: `drover metal project list` lists the IDs", spec.Project)}, nil
	}
	return nil, err
}

// editServer replaces the spec of a server.
func editServer(c *call) (*reply, error) {
	var e inventory.Entry
	if err := c.decode(&e); err != nil {
		return nil, err
	}
	var s *inventory.Server
	err := c.store.Update(func(tx *store.Tx) (err error) {
		if s, err = c.server(tx); err != nil {
			return err
		}
		if e.Name != s.Name {
			return request.Unprocessable("The name of a server can't change")
		}
		all, err := tx.AllServers()
		if err != nil {
			return err
		}
		problems := append(e.Check(), e.Conflicts(all)...)
		missing, err := c.checkProject(tx, e.Spec)
		if err != nil {
			return err
		}
		if err := request.Unprocessable(append(problems, missing...)...); err != nil {
			return err
		}
		if err := c.write(s, e); err != nil {
			return request.Unprocessable(err.Error())
		}
		return c.putServer(tx, s)
	})
	if err != nil {
		return nil, err
	}
	if s.State == inventory.Discovered {
		c.inspections.queue.Add(s.ID)
	}
	return c.okServer(s)
}

// removeServer removes a server from the inventory. It is restored before if the request asks for
// it.
func removeServer(c *call) (*reply, error) {
	if wipe := c.r.URL.Query().Get("wipe"); wipe != "" {
		if err := inventory.CheckWipe(wipe); err != nil {
			return nil, request.Unprocessable(err.Error())
		}
		if _, err := c.onServer(func(id string) (*inventory.Server, error) { return c.inspections.reset(c.r.Context(), id) }); err != nil {
			return nil, err
		}
	}
	err := c.store.Update(func(tx *store.Tx) error {
		s, err := c.server(tx)
		if err != nil {
			return err
		}
		if err := s.Removable(); err != nil {
			return request.Unprocessable(err.Error())
		}
		s.Project = ""
		if err := syncReservation(tx, s); err != nil {
			return err
		}
		return tx.Servers().Delete(s.ID)
	})
	if err != nil {
		return nil, err
	}
	return noContent()
}

// checkServer inspects a server now.
func checkServer(c *call) (*reply, error) {
	return c.onServer(func(id string) (*inventory.Server, error) { return c.inspections.inspect(c.r.Context(), id) })
}

// resetServer restores a server now.
func resetServer(c *call) (*reply, error) {
	var req api.ServerReset
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := inventory.CheckWipe(req.Wipe); err != nil {
		return nil, request.Unprocessable(err.Error())
	}
	return c.onServer(func(id string) (*inventory.Server, error) { return c.inspections.reset(c.r.Context(), id) })
}

func (c *call) onServer(do func(id string) (*inventory.Server, error)) (*reply, error) {
	s, err := c.findServer()
	if err != nil {
		return nil, err
	}
	s, err = do(s.ID)
	var denied *inventory.TransitionError
	if errors.As(err, &denied) {
		return nil, request.Unprocessable(denied.Error())
	}
	if err != nil {
		return nil, err
	}
	return c.okServer(s)
}

// putServer writes a server together with its hardware reservation.
func (s *Server) putServer(tx *store.Tx, server *inventory.Server) error {
	return errors.Join(tx.Servers().Put(server), syncReservation(tx, server))
}

// syncReservation makes the hardware reservation with the ID of a server match the server.
func syncReservation(tx *store.Tx, s *inventory.Server) error {
	h, err := tx.Hardware().Get(s.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	plan := s.EffectivePlan()
	switch {
	case s.Project == "" || plan == "":
		if h == nil || h.DeviceID != "" {
			return nil
		}
		return tx.Hardware().Delete(s.ID)
	case h == nil:
		h = &store.Hardware{ID: s.ID, Seq: s.Seq, Created: s.Created}
	}
	metro, _ := catalog.FindMetro(cmp.Or(s.Metro, anyMetro))
	h.ProjectID, h.Plan, h.Metro, h.Facility = s.Project, plan, metro.Code, cmp.Or(s.Facility, metro.Facilities[0])
	return tx.Hardware().Put(h)
}

// anyMetro is the metro of the reservation of a server that is in none.
const anyMetro = "local"
