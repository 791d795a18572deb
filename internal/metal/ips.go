package metal

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

const (
	blocksPerPage = 250

	blockCreated = "created"
	blockPending = "pending"
)

// listBlocks lists the address blocks of a project: reserved blocks first, then those of the
// devices' management addresses.
func listBlocks(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	pg, err := c.paged(blocksPerPage)
	if err != nil {
		return nil, err
	}
	ids, total := c.store.Blocks().Page(c.blockQuery(p.ID), pg.offset(), pg.size)
	out := api.IPReservations{IPAddresses: make([]api.IPReservation, 0, len(ids)), Meta: pg.meta(total)}
	err = c.store.View(func(tx *store.Tx) error {
		for _, id := range ids {
			b, err := tx.Blocks().Get(id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			out.IPAddresses = append(out.IPAddresses, c.link().block(b))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

func (c *call) blockQuery(project string) store.Query {
	v := c.r.URL.Query()
	q := store.Query{Project: project}
	for _, key := range []string{"metro", "facility"} {
		if value := v.Get(key); value != "" {
			q.Terms = append(q.Terms, key+":"+strings.ToLower(value))
		}
	}
	if tag := v.Get("tag"); tag != "" {
		q.Terms = append(q.Terms, "tag:"+tag)
	}
	var types []string
	for _, list := range append(v["types"], append(v["types[]"], v["type"]...)...) {
		for kind := range strings.SplitSeq(list, ",") {
			types = append(types, "type:"+kind)
		}
	}
	switch len(types) {
	case 0:
	case 1:
		q.Terms = append(q.Terms, types[0])
	default:
		q.AnyOf = append(q.AnyOf, types)
	}
	return q
}

// reserveBlock reserves addresses that can move between the devices of a project.
func reserveBlock(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	var req api.IPReserve
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	b, err := c.newBlock(p, &req)
	if err != nil {
		return nil, err
	}
	template := *b
	err = c.store.Update(func(tx *store.Tx) (err error) {
		*b = template
		if _, err := tx.Projects().Get(p.ID); err != nil {
			return err // Deleted since the request began.
		}
		if b.Seq, err = tx.Sequence(); err != nil {
			return err
		}
		if b.State == blockCreated {
			if err := c.fillBlock(tx, b, req.Quantity); err != nil {
				return err
			}
		}
		return tx.Blocks().Put(b)
	})
	if errors.Is(err, store.ErrFull) {
		return nil, request.Refuse(http.StatusUnprocessableEntity, "There are no %d free addresses of type %s", req.Quantity, req.Type)
	}
	if err != nil {
		return nil, notFound(err)
	}
	return created(c.link().block(b))
}

// newBlock allocates the block of a valid request.
func (c *call) newBlock(p *store.Project, req *api.IPReserve) (*store.Block, error) {
	place, err := request.BlockOf(req, func(kind string) bool { return c.poolOf(kind).IsValid() })
	if err != nil {
		return nil, err
	}
	b := &store.Block{
		ID: store.NewID(), ProjectID: p.ID, Type: req.Type, State: blockCreated, Tags: req.Tags, Details: req.Details,
		CustomData: json.RawMessage(req.CustomData), Created: c.now(), Metro: place.Metro, Facility: place.Facility,
	}
	if _, hit := c.faults.StrikeDevice(p.ID, fault.AddressQuota, ""); hit {
		if req.FailOnApprovalRequired {
			return nil, request.Unprocessable("This request exceeds the quota of the project and needs approval")
		}
		b.State = blockPending
	}
	return b, nil
}

// poolOf returns the prefix that addresses of a type are taken from.
func (s *Server) poolOf(kind string) netip.Prefix {
	switch kind {
	case "public_ipv4", "global_ipv4":
		return s.networks.Public
	case "private_ipv4":
		return s.networks.Private
	case "public_ipv6":
		return s.networks.PublicV6
	default:
		return netip.Prefix{}
	}
}

func (c *call) fillBlock(tx *store.Tx, b *store.Block, quantity int) error {
	from := c.poolOf(b.Type)
	first, err := tx.Take(c.pool(from), quantity, b.ID)
	if err != nil {
		return err
	}
	b.Prefix = blockOf(first, quantity)
	b.Network, b.Gateway = b.Prefix, first
	if c.networks.Flat && !c.networks.Own {
		b.Network, b.Gateway = from.Masked(), from.Masked().Addr().Next()
	}
	return nil
}

// block renders a block with exactly the fields that strict clients accept.
func (l linker) block(b *store.Block) api.IPReservation {
	out := api.IPReservation{
		ID: b.ID, Type: b.Type, State: b.State, Tags: nonNil(b.Tags), Assignments: []api.IPAssignment{}, Management: b.Management, Manageable: !b.Management,
		Enabled: b.State == blockCreated, Addon: !b.Management, Bill: !b.Management, Public: !strings.HasPrefix(b.Type, "private_"),
		GlobalIP: strings.HasPrefix(b.Type, "global_"), AddressFamily: 4, Project: l.href("projects", b.ProjectID), CustomData: api.ObjectOf(b.CustomData),
		Details: b.Details, CreatedAt: api.At(b.Created), Href: l.to("ips", b.ID), Metro: metro(b.Metro), Available: l.to("ips", b.ID) + "/available",
	}
	if b.Facility != "" {
		out.Facility = facility(b.Facility)
	}
	if strings.HasSuffix(b.Type, "ipv6") {
		out.AddressFamily = 6
	}
	if b.Prefix.IsValid() {
		out.Address, out.CIDR = b.Prefix.Addr().String(), b.Prefix.Bits()
		out.Network, out.Netmask, out.Gateway = b.Prefix.Masked().Addr().String(), netmask(b.Prefix), addressText(b.Gateway)
	}
	for _, u := range b.Uses {
		out.Assignments = append(out.Assignments, l.assignment(addressOf(b, u), u.DeviceID))
	}
	return out
}

// addressOf returns the address that an assignment of a block puts on a device.
func addressOf(b *store.Block, u store.Use) store.Address {
	return store.Address{
		ID: u.ID, BlockID: b.ID, IP: u.Prefix.Addr(), Prefix: u.Prefix, Gateway: b.Gateway,
		Public: !strings.HasPrefix(b.Type, "private_"), Management: b.Management || u.Management, Created: u.Created,
	}
}
