package metal

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// The peer of every session, with the values of the original API.
const peerAS = 65530

var peerIPs = map[int][]string{
	4: {"169.254.255.1", "169.254.255.2"},
	6: {"fc00:0000:0000:0000:0000:0000:0000:000e", "fc00:0000:0000:0000:0000:0000:0000:000f"},
}

var familyNumber = map[string]int{"ipv4": 4, "ipv6": 6}

func getBGPConfig(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	cfg, err := c.bgpConfig(p.ID)
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		return ok(struct{}{})
	}
	out := c.link().bgpConfig(cfg)
	for _, id := range c.store.Sessions().All(store.Query{Project: p.ID}) {
		out.Sessions = append(out.Sessions, *c.link().href("bgp/sessions", id))
	}
	return ok(out)
}

// bgpConfig returns the BGP configuration of a project, or nil if BGP was never enabled.
func (s *Server) bgpConfig(project string) (*store.BGPConfig, error) {
	var cfg *store.BGPConfig
	err := s.store.View(func(tx *store.Tx) (err error) {
		cfg, err = tx.BGP().Get(project)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return cfg, err
}

// enableBGP stores the BGP configuration of a project, replacing an earlier one.
func enableBGP(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	var req api.BGPConfigRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := request.CheckBGP(&req); err != nil {
		return nil, err
	}
	err = c.store.Update(func(tx *store.Tx) error {
		return tx.BGP().Put(&store.BGPConfig{
			ID: uuid.NewString(), ProjectID: p.ID, ASN: req.ASN, MD5: req.MD5, DeploymentType: req.DeploymentType,
			UseCase: req.UseCase, Created: c.now(),
		})
	})
	if err != nil {
		return nil, err
	}
	return noContent()
}

func (l linker) bgpConfig(cfg *store.BGPConfig) api.BGPConfig {
	return api.BGPConfig{
		ID: cfg.ID, Status: "enabled", DeploymentType: cfg.DeploymentType, ASN: cfg.ASN, MD5: cfg.MD5, MaxPrefix: 10,
		Project: l.href("projects", cfg.ProjectID), CreatedAt: api.At(cfg.Created), RequestedAt: api.At(cfg.Created), Href: l.to("bgp-configs", cfg.ID),
	}
}

func listSessions(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	return c.sessionPage(store.Query{Project: d.ProjectID, Terms: []string{"device:" + d.ID}})
}

func listProjectSessions(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.sessionPage(store.Query{Project: p.ID})
}

func (c *call) sessionPage(q store.Query) (*reply, error) {
	pg, err := c.paged(defaultPerPage)
	if err != nil {
		return nil, err
	}
	ids, total := c.store.Sessions().Page(q, pg.offset(), pg.size)
	out := api.BGPSessions{BGPSessions: []api.BGPSession{}, Meta: pg.meta(total)}
	err = c.store.View(func(tx *store.Tx) error {
		for _, id := range ids {
			if x, err := tx.Sessions().Get(id); err == nil {
				out.BGPSessions = append(out.BGPSessions, c.link().session(x))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// createSession creates a BGP session of a device; a device has one per address family.
func createSession(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	var req api.BGPSessionRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if familyNumber[req.AddressFamily] == 0 {
		return nil, request.Unprocessable("Address family must be ipv4 or ipv6")
	}
	cfg, err := c.bgpConfig(d.ProjectID)
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		return nil, request.Unprocessable("BGP is not enabled for this project")
	}
	x := &store.BGPSession{ID: uuid.NewString(), ProjectID: d.ProjectID, DeviceID: d.ID, Family: req.AddressFamily, Created: c.now()}
	set(&x.DefaultRoute, req.DefaultRoute)
	defer c.store.Lock(d.ID)()
	err = c.store.Update(func(tx *store.Tx) (err error) {
		for _, id := range c.store.Sessions().All(store.Query{Terms: []string{"device:" + d.ID}}) {
			if other, err := tx.Sessions().Get(id); err == nil && other.Family == x.Family {
				return request.Unprocessable("Device " + d.Hostname + " already has session for " + x.Family)
			}
		}
		if x.Seq, err = tx.Sequence(); err != nil {
			return err
		}
		return tx.Sessions().Put(x)
	})
	if err != nil {
		return nil, err
	}
	c.devices.enqueue(d.ID)
	return created(c.link().session(x))
}

func (c *call) session(tx *store.Tx) (*store.BGPSession, error) {
	x, err := tx.Sessions().Get(strings.ToLower(c.r.PathValue("session")))
	if err != nil {
		return nil, notFound(err)
	}
	if !c.who.mayUse(x.ProjectID) {
		return nil, errNotFound
	}
	return x, nil
}

func getSession(c *call) (*reply, error) {
	var x *store.BGPSession
	err := c.store.View(func(tx *store.Tx) (err error) {
		x, err = c.session(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ok(c.link().session(x))
}

func updateSession(c *call) (*reply, error) {
	var req api.BGPSessionRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	var x *store.BGPSession
	err := c.store.Update(func(tx *store.Tx) (err error) {
		if x, err = c.session(tx); err != nil {
			return err
		}
		set(&x.DefaultRoute, req.DefaultRoute)
		return tx.Sessions().Put(x)
	})
	if err != nil {
		return nil, err
	}
	return ok(c.link().session(x))
}

func deleteSession(c *call) (*reply, error) {
	var device string
	err := c.store.Update(func(tx *store.Tx) error {
		x, err := c.session(tx)
		if err != nil {
			return err
		}
		device = x.DeviceID
		return tx.Sessions().Delete(x.ID)
	})
	if err != nil {
		return nil, err
	}
	c.devices.enqueue(device)
	return noContent()
}

// MayAnnounce reports whether a device may announce an address with BGP: it has a session of that
// family, and the address is reserved for its project in its metro. It makes Server a
// driver.Router.
func (s *Server) MayAnnounce(id string, address netip.Addr) bool {
	var may bool
	err := s.store.View(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if err != nil || d.Deleting {
			return err
		}
		b, err := s.blockWith(tx, d.ProjectID, netip.PrefixFrom(address, address.BitLen()))
		if err != nil {
			return err
		}
		may = !b.Management && (b.Metro == "" || b.Metro == d.Metro) && s.hasSession(tx, id, family(address))
		return nil
	})
	return err == nil && may
}

func (s *Server) hasSession(tx *store.Tx, device string, number int) bool {
	return slices.ContainsFunc(s.store.Sessions().All(store.Query{Terms: []string{"device:" + device}}), func(id string) bool {
		x, err := tx.Sessions().Get(id)
		return err == nil && familyNumber[x.Family] == number
	})
}

func (l linker) session(x *store.BGPSession) api.BGPSession {
	return api.BGPSession{
		ID: x.ID, Status: "up", LearnedRoutes: []string{}, AddressFamily: x.Family, Device: l.href("devices", x.DeviceID),
		DefaultRoute: x.DefaultRoute, CreatedAt: api.At(x.Created), Href: l.to("bgp/sessions", x.ID),
	}
}

func listNeighbors(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	neighbors, err := c.neighbors(d)
	if err != nil {
		return nil, err
	}
	return ok(api.BGPNeighbors{BGPNeighbors: neighbors})
}

// neighbors returns the BGP peers of a device.
func (s *Server) neighbors(d *store.Device) ([]api.BGPNeighbor, error) {
	cfg, err := s.bgpConfig(d.ProjectID)
	if err != nil || cfg == nil {
		return []api.BGPNeighbor{}, err
	}
	out := []api.BGPNeighbor{}
	err = s.store.View(func(tx *store.Tx) error {
		for _, id := range s.store.Sessions().All(store.Query{Terms: []string{"device:" + d.ID}}) {
			if x, err := tx.Sessions().Get(id); err == nil {
				out = append(out, neighbor(d, cfg, familyNumber[x.Family]))
			}
		}
		return nil
	})
	return out, err
}

// neighbor describes the peers of one address family. Sessions use the private IPv4 address or the
// IPv6 address.
func neighbor(d *store.Device, cfg *store.BGPConfig, number int) api.BGPNeighbor {
	n := api.BGPNeighbor{
		AddressFamily: number, CustomerAS: cfg.ASN, MD5Enabled: cfg.MD5 != "", Multihop: true, PeerAS: peerAS, PeerIPs: peerIPs[number],
		RoutesIn: []api.BGPRoute{}, RoutesOut: []api.BGPRoute{},
	}
	if cfg.MD5 != "" {
		n.MD5Password = &cfg.MD5
	}
	for _, a := range d.Addresses {
		switch {
		case a.Management && family(a.IP) == number && (number == 6 || !a.Public):
			n.CustomerIP = a.IP.String()
		case !a.Management && family(a.IP) == number:
			n.RoutesIn = append(n.RoutesIn, api.BGPRoute{Route: a.Prefix.String()})
		}
	}
	return n
}
