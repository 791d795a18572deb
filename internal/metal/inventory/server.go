package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// Server is a record: a server that somebody owns.
type Server struct {
	ID  string `json:"id"`
	Seq uint64 `json:"seq"`
	Spec
	Status
	// Sealed are the encrypted secrets.
	Sealed  []byte    `json:"sealed,omitempty"`
	Created time.Time `json:"created"`
}

// Spec is what the owner says about a server.
type Spec struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	// Plan is the plan that orders name. Without one, the label "plan" or the facts determine it.
	Plan string `json:"plan,omitempty"`
	// Metro and Facility are where the server is. Without them, it is everywhere.
	Metro    string `json:"metro,omitempty"`
	Facility string `json:"facility,omitempty"`
	// Project is the ID of the project that the server is reserved for. Its hardware reservation has
	// the ID of the server.
	Project string `json:"project,omitempty"`
	NICs    []NIC  `json:"nics,omitempty"`
	// Disk is the disk of the operating system, such as /dev/sda.
	Disk string      `json:"disk,omitempty"`
	SSH  *driver.SSH `json:"ssh,omitempty"`
	BMC  *BMC        `json:"bmc,omitempty"`
	// Drained servers are not given to new machines.
	Drained bool `json:"drained,omitempty"`
}

// NIC is a network interface.
type NIC struct {
	MAC         string       `json:"mac,omitempty"`
	Address     netip.Prefix `json:"address,omitzero"`
	Gateway     netip.Addr   `json:"gateway,omitzero"`
	Nameservers []netip.Addr `json:"nameservers,omitempty"`
	VLAN        int          `json:"vlan,omitempty"`
}

// BMC is the management controller of a server.
type BMC struct {
	Address netip.Addr `json:"address"`
	User    string     `json:"user"`
}

// State is the state of a server.
type State string

// States.
const (
	// Discovered servers have not been checked yet.
	Discovered State = "Discovered"
	// Ready servers can be given to machines.
	Ready State = "Ready"
	// Provisioning servers become machines.
	Provisioning State = "Provisioning"
	// InUse servers are machines.
	InUse State = "InUse"
	// Cleaning servers are being restored.
	Cleaning State = "Cleaning"
	// Failed servers are never given to machines. Somebody must repair and reset them.
	Failed State = "Failed"
)

// Status is what metal knows about a server.
type Status struct {
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Problems are why the server is not Ready, with remedies.
	Problems []driver.Problem `json:"problems,omitempty"`
	// DeviceID is the device that has the server: no other device may touch it.
	DeviceID string       `json:"deviceID,omitempty"`
	Facts    driver.Facts `json:"facts,omitzero"`
	Checked  time.Time    `json:"checked,omitzero"`
}

// planLabel is the label that names a plan.
const planLabel = "plan"

// derivedPlans are the plans of servers that name none, largest first.
func derivedPlans() []string { return []string{"server.large", "server.medium", "server.small"} }

// EffectivePlan returns the plan under which the server is ordered, or "" if it has none yet.
func (s *Server) EffectivePlan() string {
	if named := cmp.Or(s.Plan, s.Labels[planLabel]); named != "" {
		return named
	}
	for _, slug := range derivedPlans() {
		plan, _ := catalog.FindPlan(slug)
		// Firmware and kernel keep some memory, so a server with 8 GiB reports less.
		if s.Facts.CPUs >= plan.CPUs && s.Facts.MemoryBytes >= plan.MemoryBytes/10*9 {
			return slug
		}
	}
	return ""
}

// Address returns the address of the server and its gateway.
func (s *Server) Address() (address netip.Prefix, gateway netip.Addr) {
	if s.Facts.Address.IsValid() {
		return s.Facts.Address, s.Facts.Gateway
	}
	for _, n := range s.NICs {
		if n.Address.IsValid() {
			return n.Address, n.Gateway
		}
	}
	return netip.Prefix{}, netip.Addr{}
}

// Held reports whether a device has the server.
func (s *Server) Held() bool { return s.DeviceID != "" }

// Available reports whether the server can be given to a machine now.
func (s *Server) Available() bool { return s.State == Ready && !s.Drained && !s.Held() }

// Order is what a device needs.
type Order struct {
	Plan string
	// Metro and Facility are where the server must be, if they are set.
	Metro, Facility string
	// ID selects one server, the one that a hardware reservation names.
	ID string
}

// Matches reports whether the server is what an order asks for, whether or not it is available. A
// reserved server only matches its own reservation.
func (s *Server) Matches(o Order) bool {
	if o.ID != "" {
		return s.ID == o.ID
	}
	return s.Project == "" && s.EffectivePlan() == o.Plan &&
		(s.Metro == "" || o.Metro == "" || s.Metro == o.Metro) && (s.Facility == "" || o.Facility == "" || s.Facility == o.Facility)
}

// Choose returns the server for an order, or nil if none is available. It prefers servers that are
// tied to the location, so that the others stay available elsewhere, and then the oldest.
func Choose(servers []*Server, o Order) *Server {
	var fit []*Server
	for _, s := range servers {
		if s.Available() && s.Matches(o) {
			fit = append(fit, s)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return slices.MinFunc(fit, func(a, b *Server) int {
		return cmp.Or(-strings.Compare(a.Metro, b.Metro), -strings.Compare(a.Facility, b.Facility), cmp.Compare(a.Seq, b.Seq))
	})
}
