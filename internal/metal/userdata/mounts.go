package userdata

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mounts reads a file system table. The disks of a local machine are directories, so it knows them
// by their labels only.
func (p *parser) mounts(node *yaml.Node) error {
	var rows [][]string
	if err := node.Decode(&rows); err != nil {
		return err
	}
	for _, row := range rows {
		if len(row) < 2 || row[1] == "" || row[1] == "none" || row[1] == "null" {
			continue // Removes an entry of the image.
		}
		row = append(row, "", "")
		m := Mount{Source: row[0], Target: row[1], Kind: row[2], Options: row[3]}
		if !m.supported() {
			p.note("mounts", fmt.Sprintf("%s on %s skipped: a local machine mounts only tmpfs, directories, and file systems of fs_setup by label", m.Source, m.Target))
			continue
		}
		p.config.Mounts = append(p.config.Mounts, m)
	}
	return nil
}

func (m Mount) supported() bool {
	return strings.HasPrefix(m.Source, "LABEL=") || m.Source == "tmpfs" || m.Kind == "tmpfs" ||
		slices.Contains(strings.Split(m.Options, ","), "bind")
}

func (p *parser) disks(node *yaml.Node) error {
	var entries []struct{ Label string }
	if err := node.Decode(&entries); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Label == "" || strings.ContainsAny(e.Label, "/\x00") {
			p.note("fs_setup", "skipped: a file system without a label")
			continue
		}
		p.config.Disks = append(p.config.Disks, Disk{Label: e.Label})
	}
	return nil
}

func trusted(node *yaml.Node) ([]string, error) {
	var v struct{ Trusted []string }
	err := node.Decode(&v)
	return v.Trusted, err
}

func (p *parser) power(node *yaml.Node) error {
	var v struct{ Mode string }
	if err := node.Decode(&v); err != nil {
		return err
	}
	switch v.Mode {
	case "reboot":
		p.config.Power = "reboot"
	case "poweroff", "halt":
		p.config.Power = "poweroff"
	default:
		return fmt.Errorf("unknown mode %q: use poweroff or reboot", v.Mode)
	}
	return nil
}
