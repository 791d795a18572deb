package inventory

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// maxFile bounds the files that are read: thousands of servers.
const maxFile = 4 << 20

// Entry is a server as a client sends it.
type Entry struct {
	Spec
	Secrets driver.Secrets `json:"secrets,omitzero"`
}

// Row is one server of a file.
type Row struct {
	Entry
	// Where is the place in the file, such as "row 3".
	Where string
	// Problems prevent the import of the whole file, Notes don't.
	Problems, Notes []string
}

// Read reads a file of servers: the hardware CSV of bare-metal EKS Anywhere or a k0sctl
// configuration.
func Read(data []byte) ([]Row, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has %d bytes, and at most %d are read", len(data), maxFile)
	}
	var rows []Row
	var err error
	if isK0sctl(data) {
		rows, err = readK0sctl(data)
	} else {
		rows, err = readCSV(data)
	}
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the file has no servers")
	}
	checkRows(rows)
	return rows, nil
}

func isK0sctl(data []byte) bool {
	return bytes.Contains(data, []byte("k0sctl.k0sproject.io/"))
}

// checkRows adds the problems of the specs, and of what two rows share.
func checkRows(rows []Row) {
	seen := map[string]string{}
	for i := range rows {
		r := &rows[i]
		r.Problems = append(r.Problems, r.Check()...)
		for _, key := range append(r.identities(), "name "+r.Name) {
			if other := seen[key]; other != "" && key != "name " {
				r.Problems = append(r.Problems, fmt.Sprintf("%s is also in %s", key, other))
			}
			seen[key] = r.Where
		}
	}
}

// Messages returns the problems and notes of all rows, one per line.
func Messages(rows []Row) (problems, notes []string) {
	for _, r := range rows {
		where := r.Where
		if r.Name != "" {
			where += fmt.Sprintf(" (%s)", r.Name)
		}
		for _, p := range r.Problems {
			problems = append(problems, where+": "+p)
		}
		for _, n := range r.Notes {
			notes = append(notes, where+": "+n)
		}
	}
	return problems, notes
}

// ParseLabels reads key=value pairs.
func ParseLabels(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("label %.80q is not of the form key=value", pair)
		}
		if old, twice := out[key]; twice && old != value {
			return nil, fmt.Errorf("label %q has the values %q and %q", key, old, value)
		}
		out[key] = value
	}
	return out, nil
}

// Merged returns a spec of a file for a server that exists. A file doesn't say everything: what it
// leaves out stays.
func (s *Server) Merged(to Spec) Spec {
	to.Plan, to.Metro, to.Facility = cmp.Or(to.Plan, s.Plan), cmp.Or(to.Metro, s.Metro), cmp.Or(to.Facility, s.Facility)
	to.Project, to.Disk, to.Drained = cmp.Or(to.Project, s.Project), cmp.Or(to.Disk, s.Disk), to.Drained || s.Drained
	if to.Labels == nil {
		to.Labels = s.Labels
	}
	if to.NICs == nil {
		to.NICs = s.NICs
	}
	if to.SSH == nil {
		to.SSH = s.SSH
	}
	if to.BMC == nil {
		to.BMC = s.BMC
	}
	to.SSH = keepHostKeys(to.SSH, s.SSH)
	return to
}

// keepHostKeys keeps the host keys that are known of the same hosts.
func keepHostKeys(to, from *driver.SSH) *driver.SSH {
	if to == nil || from == nil || to.Host != from.Host || portOf(*to) != portOf(*from) {
		return to
	}
	out := *to
	out.HostKey = cmp.Or(out.HostKey, from.HostKey)
	out.Bastion = keepHostKeys(to.Bastion, from.Bastion)
	return &out
}

// MergeSecrets returns the secrets with those replaced that are given.
func MergeSecrets(have, given driver.Secrets) driver.Secrets {
	return driver.Secrets{
		Password: cmp.Or(given.Password, have.Password), KeyPassphrase: cmp.Or(given.KeyPassphrase, have.KeyPassphrase),
		BastionPassword: cmp.Or(given.BastionPassword, have.BastionPassword), BMCPassword: cmp.Or(given.BMCPassword, have.BMCPassword),
	}
}
