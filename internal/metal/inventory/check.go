package inventory

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
)

const (
	maxName = 63
	maxPort = 65535
	maxVLAN = 4094
)

var (
	userPattern = regexp.MustCompile(`^[a-z_][a-z0-9_.-]{0,31}$`)
	diskPattern = regexp.MustCompile(`^/dev/[A-Za-z0-9/_.:-]+$`)
)

// Check returns everything that is wrong with a spec by itself.
func (s *Spec) Check() []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len(s.Name) > maxName || len(validation.IsDNS1123Subdomain(s.Name)) > 0 {
		add("name %.80q is not a host name of lower-case letters, digits, hyphens and dots with at most %d characters", s.Name, maxName)
	}
	for key, value := range s.Labels {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			add("label %.80q is not a valid label", key+"="+value)
		}
	}
	for field, plan := range map[string]string{"plan": s.Plan, "label plan": s.Labels[planLabel]} {
		if _, known := catalog.FindPlan(plan); plan != "" && !known {
			add("%s %.80q is not in the catalog; use server.small, server.medium, server.large or a plan that `drover metal capacity --all` lists", field, plan)
		}
	}
	wrong = append(wrong, s.checkPlace()...)
	wrong = append(wrong, s.checkNICs()...)
	if s.Disk != "" && !diskPattern.MatchString(s.Disk) {
		add("disk %.80q is not a device such as /dev/sda", s.Disk)
	}
	if s.SSH != nil {
		wrong = append(wrong, checkSSH("ssh", *s.SSH)...)
	}
	if s.BMC != nil && (!s.BMC.Address.IsValid() || s.BMC.User == "") {
		add("the BMC needs an address and a user")
	}
	slices.Sort(wrong) // Labels are in no order.
	return wrong
}

func (s *Spec) checkPlace() []string {
	if s.Metro != "" {
		if _, known := catalog.FindMetro(s.Metro); !known {
			return []string{fmt.Sprintf("metro %.80q is not in the catalog", s.Metro)}
		}
	}
	if s.Facility == "" {
		return nil
	}
	switch m, known := catalog.MetroOf(s.Facility); {
	case !known:
		return []string{fmt.Sprintf("facility %.80q is not in the catalog", s.Facility)}
	case m.Code != s.Metro:
		return []string{fmt.Sprintf("facility %q is in metro %q: set that metro", s.Facility, m.Code)}
	}
	return nil
}

func (s *Spec) checkNICs() []string {
	var wrong []string
	for _, n := range s.NICs {
		if _, err := net.ParseMAC(n.MAC); n.MAC != "" && err != nil {
			wrong = append(wrong, fmt.Sprintf("mac %.80q is not a MAC address", n.MAC))
		}
		if n.Address.IsValid() && n.Gateway.IsValid() && !n.Address.Masked().Contains(n.Gateway) {
			wrong = append(wrong, fmt.Sprintf("gateway %s is not in the network %s", n.Gateway, n.Address.Masked()))
		}
		if n.VLAN < 0 || n.VLAN > maxVLAN {
			wrong = append(wrong, fmt.Sprintf("vlan_id %d is not from 0 to %d", n.VLAN, maxVLAN))
		}
	}
	return wrong
}

func checkSSH(field string, s driver.SSH) []string {
	var wrong []string
	if _, err := netip.ParseAddr(s.Host); err != nil && len(validation.IsDNS1123Subdomain(strings.ToLower(s.Host))) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s: %.80q is neither an address nor a host name", field, s.Host))
	}
	if s.Port < 0 || s.Port > maxPort {
		wrong = append(wrong, fmt.Sprintf("%s: port %d is not from 1 to %d", field, s.Port, maxPort))
	}
	if !userPattern.MatchString(s.User) {
		wrong = append(wrong, fmt.Sprintf("%s: %.80q is not a user name", field, s.User))
	}
	if s.HostKey != "" {
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.HostKey)); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: the host key is not a public key such as \"ssh-ed25519 AAAA…\"", field))
		}
	}
	switch {
	case s.Bastion == nil:
	case s.Bastion.Bastion != nil:
		wrong = append(wrong, field+": a bastion can't have a bastion of its own")
	default:
		wrong = append(wrong, checkSSH(field+": bastion", *s.Bastion)...)
	}
	return wrong
}

// Conflicts returns what a spec has in common with another server although only one may have it.
func (s *Spec) Conflicts(others []*Server) []string {
	var wrong []string
	for _, o := range others {
		if o.Name == s.Name {
			continue
		}
		for _, key := range s.identities() {
			if slices.Contains(o.identities(), key) {
				wrong = append(wrong, fmt.Sprintf("%s is that of server %q", key, o.Name))
			}
		}
	}
	return wrong
}

// identities are what no two servers share. Servers behind different bastions may have the same
// address.
func (s *Spec) identities() []string {
	var out []string
	for _, n := range s.NICs {
		if n.MAC != "" {
			out = append(out, "mac "+strings.ToLower(n.MAC))
		}
		if n.Address.IsValid() {
			out = append(out, "address "+n.Address.Addr().String())
		}
	}
	if s.BMC != nil {
		out = append(out, "BMC address "+s.BMC.Address.String())
	}
	if s.SSH != nil {
		at := fmt.Sprintf("SSH address %s:%d", strings.ToLower(s.SSH.Host), portOf(*s.SSH))
		if b := s.SSH.Bastion; b != nil {
			at += fmt.Sprintf(" through %s:%d", strings.ToLower(b.Host), portOf(*b))
		}
		out = append(out, at)
	}
	return out
}

// DefaultPort is the port of SSH.
const DefaultPort = 22

func portOf(s driver.SSH) int {
	if s.Port == 0 {
		return DefaultPort
	}
	return s.Port
}
