package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// request is what all cloud configurations together ask for.
type request struct {
	Plan
	fqdn string
}

// cloudConfig reads one cloud configuration. As with cloud-init, a key of a
// later one takes the place of the same key of an earlier one.
func (p *parser) cloudConfig(text []byte) error {
	var keys map[string]yaml.Node
	if err := yaml.Unmarshal(text, &keys); err != nil {
		return fmt.Errorf("reading the cloud-config: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		node := keys[key]
		if err := p.key(key, &node); err != nil {
			return fmt.Errorf("reading %q of the cloud-config: %w", key, err)
		}
	}
	return nil
}

// key reads one top-level key.
func (p *parser) key(key string, node *yaml.Node) error {
	if node.Tag == "!!null" {
		return nil
	}
	if read, ok := readers[key]; ok {
		return read(p, node)
	}
	return p.leaveOut(key)
}

// readers are the keys that have an effect.
var readers = map[string]func(p *parser, node *yaml.Node) error{
	"bootcmd":             func(p *parser, n *yaml.Node) error { return decode(n, &p.config.Boot, commands) },
	"runcmd":              func(p *parser, n *yaml.Node) error { return decode(n, &p.config.Commands, commands) },
	"write_files":         func(p *parser, n *yaml.Node) error { return decode(n, &p.config.Files, files) },
	"users":               (*parser).users,
	"user":                (*parser).user,
	"groups":              func(p *parser, n *yaml.Node) error { return decode(n, &p.config.Groups, groups) },
	"ssh_authorized_keys": func(p *parser, n *yaml.Node) error { return n.Decode(&p.config.RootKeys) },
	"hostname":            func(p *parser, n *yaml.Node) error { return n.Decode(&p.config.Hostname) },
	"fqdn":                func(p *parser, n *yaml.Node) error { return n.Decode(&p.config.fqdn) },
	"timezone":            func(p *parser, n *yaml.Node) error { return n.Decode(&p.config.Timezone) },
	"final_message":       func(p *parser, n *yaml.Node) error { return n.Decode(&p.config.Final) },
	"mounts":              (*parser).mounts,
	"fs_setup":            (*parser).disks,
	"ca_certs":            func(p *parser, n *yaml.Node) error { return decode(n, &p.config.Certs, trusted) },
	"ca-certs":            func(p *parser, n *yaml.Node) error { return decode(n, &p.config.Certs, trusted) },
	"power_state":         (*parser).power,
}

// decode reads a node with a function that explains itself.
func decode[T any](node *yaml.Node, into *T, read func(*yaml.Node) (T, error)) error {
	value, err := read(node)
	if err != nil {
		return err
	}
	*into = value
	return nil
}

// leaveOut notes a key that has no effect, with the reason if it is a known one.
func (p *parser) leaveOut(key string) error {
	reason, ok := reasons[key]
	if !ok {
		reason = "unknown key, left out"
	}
	if reason != "" {
		p.note(key, reason)
	}
	return nil
}

// reasons are why known keys do nothing. An empty reason means that what they
// ask for is so already.
var reasons = map[string]string{
	"ntp":                        "left out: the clock of a local machine is that of its host",
	"disk_setup":                 "left out: a local machine has no disks of its own, file systems become directories",
	"growpart":                   "",
	"resize_rootfs":              "",
	"preserve_hostname":          "",
	"manage_etc_hosts":           "",
	"prefer_fqdn_over_hostname":  "",
	"ssh_pwauth":                 "left out: local machines accept keys only",
	"disable_root":               "left out: root may log in with a key",
	"ssh_deletekeys":             "",
	"locale":                     "left out: local machines have C.UTF-8 only",
	"output":                     "left out: output goes to the console",
	"packages":                   "left out: local machines can't install packages, they come with what a node needs",
	"package_update":             "left out: local machines can't install packages",
	"package_upgrade":            "left out: local machines can't install packages",
	"package_reboot_if_required": "",
	"apt":                        "left out: local machines can't install packages",
	"apt_sources":                "left out: local machines can't install packages",
	"yum_repos":                  "left out: local machines can't install packages",
	"snap":                       "left out: local machines can't install packages",
	"swap":                       "left out: swap is the host's",
	"chpasswd":                   "left out: local machines accept keys only",
	"password":                   "left out: local machines accept keys only",
	"phone_home":                 "left out: the machine reports to Drover by itself",
	"datasource":                 "",
	"datasource_list":            "",
	"merge_how":                  "left out: a later part replaces the keys of an earlier one",
}

// finish puts the parts together.
func (p *parser) finish() (Plan, error) {
	plan := p.config.Plan
	if plan.Hostname == "" && p.config.fqdn != "" {
		plan.Hostname, _, _ = strings.Cut(p.config.fqdn, ".")
	}
	plan.Scripts = p.scripts
	plan.Notes = p.notes
	return plan, nil
}
