package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// config is what all cloud-configs together ask for.
type config struct {
	Plan
	fqdn string
}

// cloudConfig reads one cloud-config. As with cloud-init, a key of a later one replaces the same
// key of an earlier one.
func (p *parser) cloudConfig(text []byte) error {
	keys, err := topLevel(text)
	if err != nil {
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

func topLevel(text []byte) (map[string]yaml.Node, error) {
	var keys map[string]yaml.Node
	err := yaml.Unmarshal(text, &keys)
	return keys, err
}

// key reads one top-level key.
func (p *parser) key(key string, node *yaml.Node) error {
	if node.Tag == "!!null" {
		return nil
	}
	if read, ok := readers[key]; ok {
		return read(p, node)
	}
	p.skip(key)
	return nil
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

// decode reads a node with a function whose errors explain themselves.
func decode[T any](node *yaml.Node, into *T, read func(*yaml.Node) (T, error)) error {
	value, err := read(node)
	if err != nil {
		return err
	}
	*into = value
	return nil
}

// skip notes a key that has no effect, with the reason if the key is known.
func (p *parser) skip(key string) {
	reason, known := reasons[key]
	if !known {
		reason = "skipped: unknown key"
	}
	if reason != "" {
		p.note(key, reason)
	}
}

const (
	keysOnly   = "skipped: local machines accept SSH keys only"
	noPackages = "skipped: local machines can't install packages"
)

// reasons say why known keys have no effect. A key with an empty reason asks for what is the case
// anyway.
var reasons = map[string]string{
	"ntp":                        "skipped: a local machine uses the clock of its host",
	"disk_setup":                 "skipped: a local machine has directories instead of disks",
	"growpart":                   "",
	"resize_rootfs":              "",
	"preserve_hostname":          "",
	"manage_etc_hosts":           "",
	"prefer_fqdn_over_hostname":  "",
	"ssh_pwauth":                 keysOnly,
	"disable_root":               "skipped: root may log in with an SSH key",
	"ssh_deletekeys":             "",
	"locale":                     "skipped: the locale of local machines is C.UTF-8",
	"output":                     "skipped: output goes to the console",
	"packages":                   noPackages,
	"package_update":             noPackages,
	"package_upgrade":            noPackages,
	"package_reboot_if_required": "",
	"apt":                        noPackages,
	"apt_sources":                noPackages,
	"yum_repos":                  noPackages,
	"snap":                       noPackages,
	"swap":                       "skipped: local machines use the swap of their host",
	"chpasswd":                   keysOnly,
	"password":                   keysOnly,
	"phone_home":                 "skipped: local machines report to Drover without it",
	"datasource":                 "",
	"datasource_list":            "",
	"merge_how":                  "skipped: a later part replaces the keys of an earlier one",
}

// finish combines the parts.
func (p *parser) finish() Plan {
	plan := p.config.Plan
	if plan.Hostname == "" && p.config.fqdn != "" {
		plan.Hostname, _, _ = strings.Cut(p.config.fqdn, ".")
	}
	plan.Scripts = p.scripts
	plan.Notes = p.notes
	return plan
}
