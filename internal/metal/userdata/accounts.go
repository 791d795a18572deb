package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// defaultUser stands for root on a local machine.
const defaultUser = "default"

// words reads a list, or a string with commas.
type words []string

func (w *words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		for word := range strings.SplitSeq(node.Value, ",") {
			if word = strings.TrimSpace(word); word != "" {
				*w = append(*w, word)
			}
		}
		return nil
	}
	return node.Decode((*[]string)(w))
}

// account is an entry of users.
type account struct {
	Name         string
	Gecos        string
	Homedir      string
	Shell        string
	UID          int    `yaml:"uid"`
	PrimaryGroup string `yaml:"primary_group"`
	Groups       words
	Sudo         yaml.Node
	Passwd       string
	Keys         []string       `yaml:"ssh_authorized_keys"`
	DashKeys     []string       `yaml:"ssh-authorized-keys"`
	NoCreateHome bool           `yaml:"no_create_home"`
	Rest         map[string]any `yaml:",inline"`
}

// harmless are keys of an account that change nothing on a local machine.
var harmless = []string{
	"lock_passwd", "lock-passwd", "system", "inactive", "expiredate", "no_user_group", "no_log_init", "selinux_user",
}

// users reads accounts. The default account of a local machine is root.
func (p *parser) users(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return p.user(node)
	}
	if node.Kind != yaml.SequenceNode {
		return errNotList
	}
	for _, item := range node.Content {
		if err := p.user(resolve(item)); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) user(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.Value != defaultUser {
			p.config.Users = append(p.config.Users, User{Name: node.Value})
		}
		return nil
	}
	var a account
	if err := node.Decode(&a); err != nil {
		return err
	}
	if a.Name == "" {
		return fmt.Errorf("line %d: the user has no name", node.Line)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Rest)) {
		if !slices.Contains(harmless, key) {
			p.note("users."+a.Name+"."+key, "skipped: unknown key")
		}
	}
	keys := slices.Concat(a.Keys, a.DashKeys)
	if a.Name == defaultUser || a.Name == "root" {
		p.config.RootKeys = append(p.config.RootKeys, keys...)
		return nil
	}
	p.config.Users = append(p.config.Users, User{
		Name: a.Name, Comment: a.Gecos, Home: a.Homedir, Shell: a.Shell, UID: a.UID, PrimaryGroup: a.PrimaryGroup, Groups: a.Groups,
		Sudo: sudo(&a.Sudo), Password: a.Passwd, Keys: keys, NoHome: a.NoCreateHome,
	})
	return nil
}

// sudo reads a rule, a list of them, or "false".
func sudo(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.SequenceNode:
		rules, _ := scalars(node)
		return strings.Join(rules, "\n")
	case node.Tag == "!!bool" || node.Tag == "!!null":
		return ""
	}
	return node.Value
}

// groups reads names, or mappings from names to members.
func groups(node *yaml.Node) ([]string, error) {
	if node.Kind != yaml.SequenceNode {
		var w words
		err := node.Decode(&w)
		return w, err
	}
	var all []string
	for _, item := range node.Content {
		item = resolve(item)
		switch {
		case item.Kind == yaml.ScalarNode:
			all = append(all, item.Value)
		case item.Kind == yaml.MappingNode && len(item.Content) > 0:
			all = append(all, item.Content[0].Value)
		}
	}
	return all, nil
}
