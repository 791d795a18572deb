package metal

import (
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
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
