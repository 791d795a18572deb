package metal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/capacity"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// supply returns what the driver has. The zero value is unlimited.
func (s *Server) supply() (driver.Supply, error) {
	d, ok := s.driver.(driver.Supplier)
	if !ok {
		return driver.Supply{}, nil
	}
	supply, err := d.Supply()
	if err != nil {
		return supply, fmt.Errorf("reading the capacity of the driver: %w", err)
	}
	return supply, nil
}

// claimCapacity rejects a device that does not fit. It counts in the transaction that adds the
// device, so that the last machine is ordered once.
func (c *call) claimCapacity(tx *store.Tx, d *store.Device, o request.Order) error {
	ledger, err := c.readLedger(tx)
	if err != nil {
		return err
	}
	err = ledger.Take(capacity.Order{Project: d.ProjectID, Plan: d.Plan, Metro: d.Metro, Facility: o.OnlyFacility(), Reserved: d.ReservationID != ""})
	var shortage *capacity.ShortageError
	var quota *capacity.QuotaError
	switch {
	case errors.As(err, &quota):
		return request.Unprocessable(quota.Error())
	case errors.As(err, &shortage):
		return o.Full(shortage.Error())
	}
	return err
}

// readLedger reads what there is and what is used.
func (s *Server) readLedger(tx *store.Tx) (*capacity.Ledger, error) {
	in := capacity.Input{Quotas: map[string]capacity.Quota{}, Inventory: s.networks.Own}
	var err error
	if in.Supply, err = s.supply(); err != nil {
		return nil, err
	}
	if in.Servers, err = tx.AllServers(); err != nil {
		return nil, err
	}
	if in.Settings, err = tx.CapacitySettings(); err != nil {
		return nil, err
	}
	err = errors.Join(
		tx.Usage().Each(func(u *capacity.Use) error {
			in.Used = append(in.Used, *u)
			return nil
		}),
		tx.Projects().Each(func(p *store.Project) error {
			in.Quotas[p.ID] = p.Quota
			return nil
		}),
	)
	return capacity.New(in), err
}

// ledger returns the current ledger.
func (s *Server) ledger() (ledger *capacity.Ledger, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		ledger, err = s.readLedger(tx)
		return err
	})
	return ledger, err
}

func metroCapacity(c *call) (*reply, error) {
	places := map[string]string{}
	for _, m := range catalog.Metros() {
		places[m.Code] = m.Code
	}
	return c.levels(places)
}

func facilityCapacity(c *call) (*reply, error) {
	places := map[string]string{}
	for _, m := range catalog.Metros() {
		for _, f := range m.Facilities {
			places[f] = m.Code
		}
	}
	return c.levels(places)
}

// fewServers is the number of servers below which capacity is limited.
const fewServers = 5

// levels lists the capacity level of every plan in every place, which is given with its metro.
func (c *call) levels(places map[string]string) (*reply, error) {
	ledger, err := c.ledger()
	if err != nil {
		return nil, err
	}
	out := api.Capacity{Capacity: map[string]map[string]api.CapacityLevel{}}
	for place, metro := range places {
		out.Capacity[place] = map[string]api.CapacityLevel{}
		for _, p := range catalog.Plans() {
			free := ledger.Free(capacity.Order{Project: c.who.project, Plan: p.Slug, Metro: metro})
			if c.outOfCapacity() {
				free = 0
			}
			out.Capacity[place][p.Slug] = api.CapacityLevel{Level: level(free)}
		}
	}
	return ok(out)
}

func level(free int) string {
	switch {
	case free == 0:
		return "unavailable"
	case free != capacity.Unlimited && free < fewServers:
		return "limited"
	default:
		return "normal"
	}
}

// outOfCapacity reports whether an injected fault rejects new devices, whatever their names.
func (c *call) outOfCapacity() bool {
	for _, f := range c.faults.List(c.who.project) {
		if f.Kind == fault.NoCapacity && f.Hostname == "" && (f.Count == 0 || f.Struck < f.Count) {
			return true
		}
	}
	return false
}

// maxServers bounds the quantity of one item of a check.
const maxServers = 100_000

// checkCapacity reports for each item whether it is available in addition to all available items
// before it. An item that is not available takes nothing.
func checkCapacity(c *call) (*reply, error) {
	var req api.CapacityCheck
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if len(req.Servers) == 0 {
		return nil, request.Unprocessable("Servers can't be blank")
	}
	ledger, err := c.ledger()
	if err != nil {
		return nil, err
	}
	for i := range req.Servers {
		s := &req.Servers[i]
		o, err := placed(s.Plan, s.Metro, s.Facility)
		if err != nil {
			return nil, err
		}
		if s.Quantity < 0 || s.Quantity > maxServers {
			return nil, request.Unprocessable(fmt.Sprintf("Quantity must be from 0 to %d", maxServers))
		}
		taken := ledger.TakeAll(capacity.Order{Project: c.who.project, Plan: o.Plan, Metro: o.Metro}, int(s.Quantity))
		s.Available = taken == nil && !c.outOfCapacity()
	}
	return ok(req)
}

// reportCapacity shows what there is. It is an extension of the API.
func reportCapacity(c *call) (*reply, error) {
	if !c.who.admin {
		return nil, errDenied
	}
	ledger, err := c.ledger()
	if err != nil {
		return nil, err
	}
	return ok(capacityReport(ledger))
}

func capacityReport(ledger *capacity.Ledger) api.CapacityReport {
	out := api.CapacityReport{Settings: ledger.Settings(), Plans: []api.PlanCapacity{}}
	if h := ledger.Host(); h != nil {
		out.Host = &api.HostCapacity{
			CPUs:        resourceCapacity(h.Real.CPUs, h.Total.CPUs, h.Used.CPUs),
			MemoryBytes: resourceCapacity(h.Real.MemoryBytes, h.Total.MemoryBytes, h.Used.MemoryBytes),
			DiskBytes:   resourceCapacity(h.Real.DiskBytes, h.Total.DiskBytes, h.Used.DiskBytes),
		}
		out.Host.DiskBytes.Free = min(out.Host.DiskBytes.Free, h.FreeDiskBytes)
	}
	for _, p := range catalog.Plans() {
		for _, metro := range append([]string{""}, limitedMetros(out.Limits, p.Slug)...) {
			row := api.PlanCapacity{Plan: p.Slug, Metro: metro, Used: ledger.Devices(p.Slug, metro)}
			if free := ledger.Free(capacity.Order{Plan: p.Slug, Metro: metro}); free != capacity.Unlimited {
				row.Free = &free
			}
			out.Plans = append(out.Plans, row)
		}
	}
	return out
}

func resourceCapacity(realAmount, total, used int64) api.ResourceCapacity {
	return api.ResourceCapacity{Real: realAmount, Total: total, Used: used, Free: max(total-used, 0)}
}

// limitedMetros returns the metros that have a limit for a plan.
func limitedMetros(limits []capacity.Limit, plan string) []string {
	var out []string
	for _, l := range limits {
		if l.Metro != "" && (l.Plan == "" || l.Plan == plan) && !slices.Contains(out, l.Metro) {
			out = append(out, l.Metro)
		}
	}
	slices.Sort(out)
	return out
}

// changeCapacity replaces the settings. It is an extension of the API.
func changeCapacity(c *call) (*reply, error) {
	if !c.who.admin {
		return nil, errDenied
	}
	var req capacity.Settings
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := request.Unprocessable(req.Problems()...); err != nil {
		return nil, err
	}
	if err := c.store.Update(func(tx *store.Tx) error { return tx.SetCapacitySettings(req) }); err != nil {
		return nil, err
	}
	c.log.Info("capacity settings changed", "overcommit", req.Overcommit, "limits", req.Limits)
	return reportCapacity(c)
}

// getQuota shows the quota of a project and what it uses. It is an extension of the API.
func getQuota(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	ledger, err := c.ledger()
	if err != nil {
		return nil, err
	}
	return ok(api.ProjectQuota{Quota: p.Quota, Used: ledger.UsedBy(p.ID)})
}

// changeQuota replaces the quota of a project. It is an extension of the API.
func changeQuota(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	if !c.who.admin {
		return nil, errDenied
	}
	var req capacity.Quota
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if err := request.Unprocessable(req.Problems()...); err != nil {
		return nil, err
	}
	err = c.store.Update(func(tx *store.Tx) (err error) {
		if p, err = tx.Projects().Get(p.ID); err != nil {
			return err
		}
		p.Quota, p.Updated = req, c.now()
		return tx.Projects().Put(p)
	})
	if err != nil {
		return nil, notFound(err)
	}
	c.log.Info("project quota changed", "project", p.ID)
	return getQuota(c)
}
