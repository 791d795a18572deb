package metal

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
)

const (
	maxTag      = 80
	maxUserdata = 4 << 20
	// anyPlace leaves the choice to us.
	anyPlace = "any"
)

var (
	hostnamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
	slugPattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	billingCycles   = []string{"", "hourly", "daily", "monthly", "yearly"}
)

// order is what a valid request asks for.
type order struct {
	plan, metro, facility string
	byFacility            bool
	termination           time.Time
}

// orderOf checks a request, all of it, and says everything that is wrong.
func orderOf(req *api.DeviceCreate) (order, error) {
	var o order
	var wrong []string
	for _, check := range []func(*api.DeviceCreate, *order) string{
		checkPlan, checkOS, checkPlace, checkHostname, checkBilling, checkTags, checkUserdata, checkIPXE, checkTermination,
	} {
		if message := check(req, &o); message != "" {
			wrong = append(wrong, message)
		}
	}
	return o, unprocessable(wrong...)
}

// full is the refusal of a place that has no machine left.
func (o order) full() error {
	if o.byFacility {
		return refuse(http.StatusUnprocessableEntity, "The facility %s has no provisionable %s servers matching your criteria", o.facility, o.plan)
	}
	return refuse(http.StatusUnprocessableEntity, "There aren't available servers in that metro")
}

func checkPlan(req *api.DeviceCreate, o *order) string {
	if req.Plan == "" {
		return "Plan can't be blank"
	}
	plan, found := catalog.FindPlan(req.Plan)
	if !found {
		return req.Plan + " is not a valid plan"
	}
	o.plan = plan.Slug
	return ""
}

func checkOS(req *api.DeviceCreate, _ *order) string {
	if req.OperatingSystem == "" {
		return "Operating system can't be blank"
	}
	if !slugPattern.MatchString(req.OperatingSystem) {
		return fmt.Sprintf("%q is not a valid operating system", req.OperatingSystem)
	}
	return ""
}

// checkPlace settles where the device goes. A metro wins over facilities; a
// hardware reservation brings its own place.
func checkPlace(req *api.DeviceCreate, o *order) string {
	switch {
	case len(req.Metro) > 0:
		return o.inMetro(req.Metro)
	case len(req.Facility) > 0:
		return o.inFacility(req.Facility)
	case len(req.HardwareReservationID) == 0:
		return "Facility can't be blank"
	default:
		return ""
	}
}

// inMetro takes the first of the metros; all must exist.
func (o *order) inMetro(codes []string) string {
	for _, code := range slices.Backward(codes) {
		if strings.EqualFold(code, anyPlace) {
			code = catalog.Metros()[0].Code
		}
		m, found := catalog.FindMetro(code)
		if !found {
			return code + " is not a valid metro"
		}
		o.metro, o.facility = m.Code, m.Facilities[0]
	}
	return ""
}

// inFacility takes the first of the facilities; all must exist.
func (o *order) inFacility(codes []string) string {
	for _, code := range slices.Backward(codes) {
		if strings.EqualFold(code, anyPlace) {
			code = catalog.Metros()[0].Facilities[0]
		}
		m, found := catalog.MetroOf(code)
		if !found {
			return code + " is not a valid facility"
		}
		o.metro, o.facility, o.byFacility = m.Code, strings.ToLower(code), true
	}
	return ""
}

func checkHostname(req *api.DeviceCreate, _ *order) string { return hostnameProblem(req.Hostname) }

func hostnameProblem(name string) string {
	if name != "" && (len(name) > 253 || !hostnamePattern.MatchString(name)) {
		return fmt.Sprintf("Hostname %.80q is invalid", name)
	}
	return ""
}

func checkBilling(req *api.DeviceCreate, _ *order) string {
	if !slices.Contains(billingCycles, req.BillingCycle) {
		return req.BillingCycle + " is not a valid billing cycle"
	}
	return ""
}

func checkTags(req *api.DeviceCreate, _ *order) string { return tagProblem(req.Tags) }

func tagProblem(tags []string) string {
	for _, tag := range tags {
		if len(tag) > maxTag {
			return fmt.Sprintf("Tag %.20q… is too long (maximum is %d characters)", tag, maxTag)
		}
	}
	return ""
}

func checkUserdata(req *api.DeviceCreate, _ *order) string { return userdataProblem(req.Userdata) }

func userdataProblem(data string) string {
	if len(data) > maxUserdata {
		return fmt.Sprintf("Userdata is too long (%d bytes, maximum is %d)", len(data), maxUserdata)
	}
	return ""
}

func checkIPXE(req *api.DeviceCreate, _ *order) string {
	custom := req.OperatingSystem == catalog.CustomIPXE
	switch {
	case req.IPXEScriptURL != "" && !custom:
		return "ipxe_script_url can only be used with the operating system " + catalog.CustomIPXE
	case custom && req.IPXEScriptURL == "" && !strings.HasPrefix(req.Userdata, "#!ipxe"):
		return catalog.CustomIPXE + " needs ipxe_script_url, or userdata that is an iPXE script"
	default:
		return ""
	}
}

func checkTermination(req *api.DeviceCreate, o *order) string {
	if req.TerminationTime == nil || *req.TerminationTime == "" {
		return ""
	}
	at, err := time.Parse(time.RFC3339, *req.TerminationTime)
	if err != nil {
		return fmt.Sprintf("termination_time %.40q is not a time such as 2026-07-01T12:00:00Z", *req.TerminationTime)
	}
	o.termination = at
	return ""
}
