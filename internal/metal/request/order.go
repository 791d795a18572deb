package request

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/tags"
)

const (
	maxUserdata = 4 << 20
	// anyPlace leaves the location to the server.
	anyPlace = "any"
)

var (
	hostnamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
	slugPattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	billingCycles   = []string{"", "hourly", "daily", "monthly", "yearly"}
)

// Order is a valid request for a device.
type Order struct {
	Plan, Metro, Facility string
	// Termination is when the device deletes itself, if set.
	Termination time.Time

	byFacility bool
}

// OrderOf validates a request and reports every problem.
func OrderOf(req *api.DeviceCreate) (Order, error) {
	var o Order
	var wrong problems
	for _, check := range []func(*api.DeviceCreate, *Order) string{
		checkPlan, checkOS, checkPlace, checkHostname, checkBilling, checkTags, checkUserdata, checkKeys, checkIPXE, checkTermination,
	} {
		wrong.add(check(req, &o))
	}
	return o, Unprocessable(wrong...)
}

// OnlyFacility returns the facility if the request names no metro.
func (o Order) OnlyFacility() string {
	if o.byFacility {
		return o.Facility
	}
	return ""
}

// Full returns the error for a location without available machines, with more to say about it.
func (o Order) Full(more ...string) error {
	message := "There aren't available servers in that metro"
	if o.byFacility {
		message = fmt.Sprintf("The facility %s has no provisionable %s servers matching your criteria", o.Facility, o.Plan)
	}
	return Unprocessable(append([]string{message}, more...)...)
}

func checkPlan(req *api.DeviceCreate, o *Order) string {
	if req.Plan == "" {
		return "Plan can't be blank"
	}
	plan, found := catalog.FindPlan(req.Plan)
	if !found {
		return req.Plan + " is not a valid plan"
	}
	o.Plan = plan.Slug
	return ""
}

func checkOS(req *api.DeviceCreate, _ *Order) string {
	if req.OperatingSystem == "" {
		return "Operating system can't be blank"
	}
	if !slugPattern.MatchString(req.OperatingSystem) {
		return fmt.Sprintf("%q is not a valid operating system", req.OperatingSystem)
	}
	return ""
}

// checkPlace determines the location of the device. A metro takes precedence over facilities; a
// hardware reservation has its own location.
func checkPlace(req *api.DeviceCreate, o *Order) string {
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

// inMetro selects the first of the metros; all must exist.
func (o *Order) inMetro(codes []string) string {
	for _, code := range slices.Backward(codes) {
		if strings.EqualFold(code, anyPlace) {
			code = catalog.Metros()[0].Code
		}
		m, found := catalog.FindMetro(code)
		if !found {
			return code + " is not a valid metro"
		}
		o.Metro, o.Facility = m.Code, m.Facilities[0]
	}
	return ""
}

// inFacility selects the first of the facilities; all must exist.
func (o *Order) inFacility(codes []string) string {
	for _, code := range slices.Backward(codes) {
		if strings.EqualFold(code, anyPlace) {
			code = catalog.Metros()[0].Facilities[0]
		}
		m, found := catalog.MetroOf(code)
		if !found {
			return code + " is not a valid facility"
		}
		o.Metro, o.Facility, o.byFacility = m.Code, strings.ToLower(code), true
	}
	return ""
}

func checkHostname(req *api.DeviceCreate, _ *Order) string { return hostnameProblem(req.Hostname) }

func hostnameProblem(name string) string {
	if name != "" && (len(name) > 253 || !hostnamePattern.MatchString(name)) {
		return fmt.Sprintf("Hostname %.80q is invalid", name)
	}
	return ""
}

func checkBilling(req *api.DeviceCreate, _ *Order) string {
	if !slices.Contains(billingCycles, req.BillingCycle) {
		return req.BillingCycle + " is not a valid billing cycle"
	}
	return ""
}

func checkTags(req *api.DeviceCreate, _ *Order) string { return TagProblem(req.Tags) }

// TagProblem returns why the tags are rejected, or "".
func TagProblem(all []string) string {
	if tag, found := tags.TooLong(all); found {
		return fmt.Sprintf("Tag %.20q… is too long (maximum is %d characters)", tag, tags.MaxLength)
	}
	return ""
}

func checkUserdata(req *api.DeviceCreate, _ *Order) string { return userdataProblem(req.Userdata) }

func userdataProblem(data string) string {
	if len(data) > maxUserdata {
		return fmt.Sprintf("Userdata is too long (%d bytes, maximum is %d)", len(data), maxUserdata)
	}
	return ""
}

func checkKeys(req *api.DeviceCreate, _ *Order) string {
	for _, k := range req.SSHKeys {
		if Fingerprint(k.Key) == "" {
			return fmt.Sprintf("SSH key %.40q is not a valid public key", k.Label)
		}
	}
	return ""
}

func checkIPXE(req *api.DeviceCreate, _ *Order) string {
	custom := req.OperatingSystem == catalog.CustomIPXE
	switch {
	case req.IPXEScriptURL != "" && !custom:
		return "ipxe_script_url can only be used with the operating system " + catalog.CustomIPXE
	case custom && req.IPXEScriptURL == "" && !strings.HasPrefix(req.Userdata, "#!ipxe"):
		return catalog.CustomIPXE + " requires ipxe_script_url, or userdata with an iPXE script"
	default:
		return ""
	}
}

func checkTermination(req *api.DeviceCreate, o *Order) string {
	if req.TerminationTime == nil || *req.TerminationTime == "" {
		return ""
	}
	at, err := time.Parse(time.RFC3339, *req.TerminationTime)
	if err != nil {
		return fmt.Sprintf("termination_time %.40q is not a time such as 2026-07-01T12:00:00Z", *req.TerminationTime)
	}
	o.Termination = at
	return ""
}
