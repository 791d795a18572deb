package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/userdata"
)

// disksDir holds the file systems that userdata creates. It is on a real file system of the host.
const disksDir = "/var/lib/kubelet/.disks"

func writeFiles(p userdata.Plan) error {
	return eachFile(p, func(f userdata.File) bool { return !f.Deferred })
}

func writeDeferredFiles(p userdata.Plan) error {
	return eachFile(p, func(f userdata.File) bool { return f.Deferred })
}

func eachFile(p userdata.Plan, now func(userdata.File) bool) error {
	for _, f := range p.Files {
		if !now(f) {
			continue
		}
		if err := putFile(f); err != nil {
			return fmt.Errorf("writing %q: %w", f.Path, err)
		}
	}
	return nil
}

func putFile(f userdata.File) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if f.Append {
		flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	file, err := os.OpenFile(f.Path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Content)
	uid, gid, ownerErr := owner(f.Owner)
	if ownerErr == nil {
		ownerErr = file.Chown(uid, gid)
	}
	return errors.Join(err, ownerErr, file.Chmod(fileMode(f.Mode)), file.Close())
}

// fileMode converts a conventional mode to Go's.
func fileMode(m fs.FileMode) fs.FileMode {
	mode := m.Perm()
	for bit, flag := range map[fs.FileMode]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// owner parses user:group.
func owner(name string) (uid, gid int, err error) {
	if name == "" {
		return 0, 0, nil
	}
	userName, groupName, hasGroup := strings.Cut(name, ":")
	u, err := user.Lookup(userName)
	if err != nil {
		return 0, 0, err
	}
	gidText := u.Gid
	if hasGroup && groupName != "" {
		g, err := user.LookupGroup(groupName)
		if err != nil {
			return 0, 0, err
		}
		gidText = g.Gid
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(gidText)
	return uid, gid, err
}

// addAccounts creates groups and users by writing the account files.
func addAccounts(p userdata.Plan) error {
	for _, g := range p.Groups {
		if _, err := ensureGroup(g); err != nil {
			return fmt.Errorf("adding group %q: %w", g, err)
		}
	}
	for _, u := range p.Users {
		if err := addUser(u); err != nil {
			return fmt.Errorf("adding user %q: %w", u.Name, err)
		}
	}
	return authorize("/root", p.RootKeys, 0, 0)
}

func addUser(u userdata.User) error {
	if _, err := user.Lookup(u.Name); err == nil {
		return nil
	}
	group := u.PrimaryGroup
	if group == "" {
		group = u.Name
	}
	gid, err := ensureGroup(group)
	if err != nil {
		return err
	}
	uid := u.UID
	if uid == 0 {
		uid = freeID("/etc/passwd")
	}
	home, shell := u.Home, u.Shell
	if home == "" {
		home = "/home/" + u.Name
	}
	if shell == "" {
		shell = "/bin/bash"
	}
	password := u.Password
	if password == "" {
		password = "*"
	}
	err = errors.Join(
		appendLine("/etc/passwd", fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", u.Name, uid, gid, u.Comment, home, shell), 0o644),
		appendLine("/etc/shadow", fmt.Sprintf("%s:%s:20000:0:99999:7:::", u.Name, password), 0o600),
	)
	for _, g := range u.Groups {
		err = errors.Join(err, joinGroup(g, u.Name))
	}
	if u.Sudo != "" {
		err = errors.Join(err, os.MkdirAll("/etc/sudoers.d", 0o750),
			appendLine(filepath.Join("/etc/sudoers.d", "90-cloud-init-users"), u.Name+" "+strings.ReplaceAll(u.Sudo, "\n", "\n"+u.Name+" "), 0o440))
	}
	if err != nil || u.NoHome {
		return err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Chown(home, uid, gid), authorize(home, u.Keys, uid, gid))
}

// ensureGroup returns the ID of a group and creates it if necessary.
func ensureGroup(name string) (int, error) {
	if g, err := user.LookupGroup(name); err == nil {
		return strconv.Atoi(g.Gid)
	}
	gid := freeID("/etc/group")
	return gid, appendLine("/etc/group", fmt.Sprintf("%s:x:%d:", name, gid), 0o644)
}

func joinGroup(group, member string) error {
	if _, err := ensureGroup(group); err != nil {
		return err
	}
	data, err := os.ReadFile("/etc/group")
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, group+":") {
			continue
		}
		if !strings.HasSuffix(line, ":") {
			line += ","
		}
		lines[i] = line + member
	}
	return os.WriteFile("/etc/group", []byte(strings.Join(lines, "\n")), 0o644) //nolint:gosec // public
}

// freeID returns the first ID from 1000 that the file does not contain.
func freeID(file string) int {
	data, _ := os.ReadFile(file)
	var used []int
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(line, ":"); len(fields) > 2 {
			if id, err := strconv.Atoi(fields[2]); err == nil {
				used = append(used, id)
			}
		}
	}
	id := 1000
	for slices.Contains(used, id) {
		id++
	}
	return id
}

// authorize adds each key to authorized_keys once.
func authorize(home string, keys []string, uid, gid int) error {
	if len(keys) == 0 {
		return nil
	}
	dir := filepath.Join(home, ".ssh")
	file := filepath.Join(dir, "authorized_keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	have, _ := os.ReadFile(file)
	for _, key := range keys {
		if key = strings.TrimSpace(key); key != "" && !bytes.Contains(have, []byte(key)) {
			if err := appendLine(file, key, 0o600); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.Chown(dir, uid, gid), os.Chown(file, uid, gid))
}

func appendLine(path, line string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// mountAll mounts the file systems of the userdata. A file system with a label is a directory that
// exists as long as the machine.
func mountAll(p userdata.Plan) error {
	for _, d := range p.Disks {
		if err := os.MkdirAll(filepath.Join(disksDir, d.Label), 0o755); err != nil {
			return err
		}
	}
	for _, m := range p.Mounts {
		if err := os.MkdirAll(m.Target, 0o755); err != nil {
			return err
		}
		source, flags, kind := m.Source, uintptr(unix.MS_BIND), ""
		if label, ok := strings.CutPrefix(m.Source, "LABEL="); ok {
			source = filepath.Join(disksDir, filepath.Base(label))
			if err := os.MkdirAll(source, 0o755); err != nil {
				return err
			}
		}
		if m.Source == "tmpfs" || m.Kind == "tmpfs" {
			flags, kind = 0, "tmpfs"
		}
		if err := unix.Mount(source, m.Target, kind, flags, ""); err != nil {
			return fmt.Errorf("mounting %q on %q: %w", m.Source, m.Target, err)
		}
	}
	return nil
}

func setTimezone(p userdata.Plan) error {
	if p.Timezone == "" {
		return nil
	}
	return os.WriteFile("/etc/timezone", []byte(p.Timezone+"\n"), 0o644) //nolint:gosec // public
}

func trustCerts(p userdata.Plan) error {
	for _, pem := range p.Certs {
		if err := appendLine("/etc/ssl/certs/ca-certificates.crt", pem, 0o644); err != nil {
			return err
		}
	}
	return nil
}
