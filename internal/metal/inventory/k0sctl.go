package inventory

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// roleLabel is the label with the role of a host in a k0sctl file.
const roleLabel = "role"

// k0sctlFile is the part of a k0sctl configuration that describes hosts.
type k0sctlFile struct {
	APIVersion string     `yaml:"apiVersion"`
	Kind       string     `yaml:"kind"`
	Metadata   k0sctlName `yaml:"metadata"`
	Spec       k0sctlSpec `yaml:"spec"`
}

type k0sctlName struct {
	Name string `yaml:"name"`
}

type k0sctlSpec struct {
	Hosts []k0sctlHost `yaml:"hosts"`
}

type k0sctlHost struct {
	Role           string            `yaml:"role"`
	Hostname       string            `yaml:"hostname,omitempty"`
	PrivateAddress string            `yaml:"privateAddress,omitempty"`
	Labels         map[string]string `yaml:"labels,omitempty"`
	SSH            *k0sctlSSH        `yaml:"ssh,omitempty"`
	// Others are what only k0sctl uses.
	Others map[string]any `yaml:",inline"`
}

type k0sctlSSH struct {
	Address string         `yaml:"address"`
	User    string         `yaml:"user,omitempty"`
	Port    int            `yaml:"port,omitempty"`
	KeyPath string         `yaml:"keyPath,omitempty"`
	HostKey string         `yaml:"hostKey,omitempty"`
	Bastion *k0sctlSSH     `yaml:"bastion,omitempty"`
	Others  map[string]any `yaml:",inline"`
}

func readK0sctl(data []byte) ([]Row, error) {
	if err := safeyaml.Check(data); err != nil {
		return nil, fmt.Errorf("reading the k0sctl file: %w", err)
	}
	var file k0sctlFile
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&file); err != nil {
		return nil, fmt.Errorf("reading the k0sctl file: %w", err)
	}
	rows := make([]Row, 0, len(file.Spec.Hosts))
	for i, h := range file.Spec.Hosts {
		rows = append(rows, h.row(fmt.Sprintf("spec.hosts[%d]", i)))
	}
	return rows, nil
}

func (h k0sctlHost) row(where string) Row {
	row := Row{Where: where}
	for _, key := range slices.Sorted(maps.Keys(h.Others)) {
		row.Notes = append(row.Notes, key+" is ignored")
	}
	if h.SSH == nil {
		row.Name = strings.ToLower(h.Hostname)
		row.Problems = append(row.Problems, "ssh is missing: servers are reached with SSH")
		return row
	}
	row.SSH = h.SSH.access(&row)
	row.Name = strings.ToLower(cmp.Or(h.Hostname, nameOf(h.SSH.Address)))
	row.Labels = maps.Clone(h.Labels)
	if h.Role != "" {
		if row.Labels == nil {
			row.Labels = map[string]string{}
		}
		row.Labels[roleLabel] = h.Role
	}
	if h.PrivateAddress != "" {
		ip, err := netip.ParseAddr(h.PrivateAddress)
		if err != nil {
			row.Problems = append(row.Problems, fmt.Sprintf("privateAddress %.80q is not an address", h.PrivateAddress))
		} else {
			row.NICs = []NIC{{Address: netip.PrefixFrom(ip, ip.BitLen())}}
		}
	}
	return row
}

// nameOf makes a name from an address.
func nameOf(address string) string {
	if _, err := netip.ParseAddr(address); err == nil {
		return "server-" + strings.NewReplacer(".", "-", ":", "-").Replace(address)
	}
	return address
}

// access has the defaults of k0sctl.
func (s k0sctlSSH) access(row *Row) *driver.SSH {
	for _, key := range slices.Sorted(maps.Keys(s.Others)) {
		row.Notes = append(row.Notes, "ssh."+key+" is ignored")
	}
	out := &driver.SSH{Host: s.Address, User: cmp.Or(s.User, "root"), Port: s.Port, KeyFile: s.KeyPath, HostKey: s.HostKey}
	if s.Bastion != nil {
		out.Bastion = s.Bastion.access(row)
	}
	return out
}

// WriteK0sctl writes the servers that are reached with SSH as a k0sctl configuration, and returns
// the names of the others.
func WriteK0sctl(w io.Writer, servers []Server) (skipped []string, err error) {
	file := k0sctlFile{APIVersion: "k0sctl.k0sproject.io/v1beta1", Kind: "Cluster", Metadata: k0sctlName{Name: "drover"}}
	for _, s := range servers {
		if s.SSH == nil {
			skipped = append(skipped, s.Name)
			continue
		}
		h := k0sctlHost{Hostname: s.Name, Role: cmp.Or(s.Labels[roleLabel], "worker"), SSH: k0sctlAccess(*s.SSH)}
		for key, value := range s.Labels {
			if key != roleLabel {
				if h.Labels == nil {
					h.Labels = map[string]string{}
				}
				h.Labels[key] = value
			}
		}
		if len(s.NICs) > 0 && s.NICs[0].Address.IsValid() {
			h.PrivateAddress = s.NICs[0].Address.Addr().String()
		}
		file.Spec.Hosts = append(file.Spec.Hosts, h)
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(file); err != nil {
		return nil, err
	}
	return skipped, encoder.Close()
}

func k0sctlAccess(s driver.SSH) *k0sctlSSH {
	out := &k0sctlSSH{Address: s.Host, User: s.User, Port: portOf(s), KeyPath: s.KeyFile, HostKey: s.HostKey}
	if s.Bastion != nil {
		out.Bastion = k0sctlAccess(*s.Bastion)
	}
	return out
}
