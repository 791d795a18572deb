package userdata

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	defaultMode = 0o644
	defaultUser = "default"
)

// commands reads a list of lines and of lists of words.
func commands(node *yaml.Node) ([]Command, error) {
	if node.Kind == yaml.ScalarNode {
		return []Command{{Line: node.Value}}, nil
	}
	if node.Kind != yaml.SequenceNode {
		return nil, errors.New("it is not a list")
	}
	var all []Command
	for _, item := range node.Content {
		item = resolve(item)
		switch item.Kind {
		case yaml.ScalarNode:
			if item.Tag != "!!null" {
				all = append(all, Command{Line: item.Value})
			}
		case yaml.SequenceNode:
			words, err := scalars(item)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", item.Line, err)
			}
			if len(words) > 0 {
				all = append(all, Command{Words: words})
			}
		default:
			return nil, fmt.Errorf("line %d: a command is a text or a list of texts; quote it if it holds a colon", item.Line)
		}
	}
	return all, nil
}

func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

// scalars reads a list of texts, numbers and truth values as they are written.
func scalars(node *yaml.Node) ([]string, error) {
	var words []string
	for _, item := range node.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode {
			return nil, errors.New("a word of a command is not a text")
		}
		words = append(words, item.Value)
	}
	return words, nil
}

// mode keeps octal numbers apart from how YAML reads them.
type mode fs.FileMode

func (m *mode) UnmarshalYAML(node *yaml.Node) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(node.Value, "0o"), 8, 32)
	if err != nil || n > 0o7777 {
		return fmt.Errorf("line %d: permissions %q are not an octal number", node.Line, node.Value)
	}
	*m = mode(n)
	return nil
}

func files(node *yaml.Node) ([]File, error) {
	var entries []struct {
		Path        string
		Content     string
		Encoding    string
		Owner       string
		Permissions *mode
		Append      bool
		Defer       bool
	}
	if err := node.Decode(&entries); err != nil {
		return nil, err
	}
	var all []File
	for i, e := range entries {
		if !path.IsAbs(e.Path) {
			return nil, fmt.Errorf("entry %d: path %q is not absolute", i+1, e.Path)
		}
		content, err := decodeContent(e.Content, e.Encoding)
		if err != nil {
			return nil, fmt.Errorf("content of %q: %w", e.Path, err)
		}
		f := File{Path: path.Clean(e.Path), Content: content, Owner: e.Owner, Append: e.Append, Deferred: e.Defer, Mode: defaultMode}
		if e.Permissions != nil {
			f.Mode = fs.FileMode(*e.Permissions)
		}
		all = append(all, f)
	}
	return all, nil
}

// decodeContent undoes the encoding of a file.
func decodeContent(content, encoding string) ([]byte, error) {
	switch strings.ToLower(encoding) {
	case "", "text/plain":
		return []byte(content), nil
	case "b64", "base64":
		return unbase(content)
	case "gz", "gzip":
		return gunzip([]byte(content))
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		packed, err := unbase(content)
		if err != nil {
			return nil, err
		}
		return gunzip(packed)
	}
	return nil, fmt.Errorf("unknown encoding %q", encoding)
}

func unbase(content string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
}

// words reads a list, or one text with commas.
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

// users reads accounts. The default account of a local machine is root.
func (p *parser) users(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return p.user(node)
	}
	if node.Kind != yaml.SequenceNode {
		return errors.New("it is not a list")
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
		return fmt.Errorf("line %d: a user has no name", node.Line)
	}
	for key := range a.Rest {
		if !slices.Contains([]string{"lock_passwd", "lock-passwd", "system", "inactive", "expiredate", "no_user_group", "no_log_init", "selinux_user"}, key) {
			p.note("users."+a.Name+"."+key, "left out")
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

// mounts reads a file system table. Disks of a machine are directories, so a
// device is known by its label only.
func (p *parser) mounts(node *yaml.Node) error {
	var rows [][]string
	if err := node.Decode(&rows); err != nil {
		return err
	}
	for _, row := range rows {
		if len(row) < 2 || row[1] == "" || row[1] == "none" || row[1] == "null" {
			continue // Takes a line of an image's table back.
		}
		row = append(row, "", "")
		m := Mount{Source: row[0], Target: row[1], Kind: row[2], Options: row[3]}
		if !m.possible() {
			p.note("mounts", fmt.Sprintf("%s on %s left out: a local machine mounts tmpfs, directories, and file systems of fs_setup by label", m.Source, m.Target))
			continue
		}
		p.config.Mounts = append(p.config.Mounts, m)
	}
	return nil
}

func (m Mount) possible() bool {
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
			p.note("fs_setup", "a file system without a label is left out")
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
