package metal

import (
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/request"
)

func listMetros(*call) (*reply, error) {
	out := []*api.Metro{}
	for _, m := range catalog.Metros() {
		out = append(out, metro(m.Code))
	}
	return ok(map[string]any{"metros": out})
}

func getMetro(c *call) (*reply, error) {
	for _, m := range catalog.Metros() {
		if found := metro(m.Code); found.ID == c.r.PathValue("metro") || strings.EqualFold(m.Code, c.r.PathValue("metro")) {
			return ok(found)
		}
	}
	return nil, errNotFound
}

func listFacilities(*call) (*reply, error) {
	out := []*api.Facility{}
	for _, m := range catalog.Metros() {
		for _, f := range m.Facilities {
			out = append(out, facility(f))
		}
	}
	return ok(map[string]any{"facilities": out})
}

func getFacility(c *call) (*reply, error) {
	for _, m := range catalog.Metros() {
		for _, f := range m.Facilities {
			if found := facility(f); found.ID == c.r.PathValue("facility") || strings.EqualFold(f, c.r.PathValue("facility")) {
				return ok(found)
			}
		}
	}
	return nil, errNotFound
}

// listPlans lists the plans, all or those with a slug or a deployment type.
func listPlans(c *call) (*reply, error) {
	slug, deployment := c.r.URL.Query().Get("slug"), c.r.URL.Query().Get("deployment_type")
	var facilities, metros []api.Href
	for _, m := range catalog.Metros() {
		metros = append(metros, *c.link().href("locations/metros", catalog.ID("metro", m.Code)))
		for _, f := range m.Facilities {
			facilities = append(facilities, *c.link().href("facilities", catalog.ID("facility", f)))
		}
	}
	out := []*api.Plan{}
	for _, p := range catalog.Plans() {
		if slug != "" && slug != p.Slug || deployment != "" && !slices.Contains(p.DeploymentTypes(), deployment) {
			continue
		}
		plan := c.link().plan(p.Slug)
		plan.AvailableIn, plan.AvailableInMetros = facilities, metros
		out = append(out, plan)
	}
	return ok(map[string]any{"plans": out})
}

func listOperatingSystems(*call) (*reply, error) {
	var plans []string
	for _, p := range catalog.Plans() {
		plans = append(plans, p.Slug)
	}
	out := []*api.OperatingSystem{}
	for _, o := range catalog.OperatingSystems() {
		system := operatingSystem(o)
		system.ProvisionableOn = plans
		out = append(out, system)
	}
	return ok(map[string]any{"operating_systems": out})
}

func metroCapacity(c *call) (*reply, error) {
	var codes []string
	for _, m := range catalog.Metros() {
		codes = append(codes, m.Code)
	}
	return c.capacity(codes)
}

func facilityCapacity(c *call) (*reply, error) {
	var codes []string
	for _, m := range catalog.Metros() {
		codes = append(codes, m.Facilities...)
	}
	return c.capacity(codes)
}

// capacity lists the capacity level of every plan in every location.
func (c *call) capacity(codes []string) (*reply, error) {
	level := api.CapacityLevel{Level: "normal"}
	if c.outOfCapacity() {
		level.Level = "unavailable"
	}
	out := api.Capacity{Capacity: map[string]map[string]api.CapacityLevel{}}
	for _, code := range codes {
		out.Capacity[code] = map[string]api.CapacityLevel{}
		for _, p := range catalog.Plans() {
			out.Capacity[code][p.Slug] = level
		}
	}
	return ok(out)
}

// outOfCapacity reports whether new devices would be rejected.
func (c *call) outOfCapacity() bool {
	for _, f := range c.faults.List(c.who.project) {
		if f.Kind == fault.NoCapacity && (f.Count == 0 || f.Struck < f.Count) {
			return true
		}
	}
	return false
}

// checkCapacity reports for each requested item whether it is available.
func checkCapacity(c *call) (*reply, error) {
	var req api.CapacityCheck
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if len(req.Servers) == 0 {
		return nil, request.Unprocessable("Servers can't be blank")
	}
	for i := range req.Servers {
		s := &req.Servers[i]
		if _, err := placed(s.Plan, s.Metro, s.Facility); err != nil {
			return nil, err
		}
		s.Available = !c.outOfCapacity()
	}
	return ok(req)
}
