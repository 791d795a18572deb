package guest

import (
	"cmp"
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
	u.Home = cmp.Or(u.Home, "/home/"+u.Name)
	err = errors.Join(
		appendLine("/etc/passwd", passwdLine(u, uid, gid), 0o644),
		appendLine("/etc/shadow", shadowLine(u), 0o600),
	)
	for _, g := range u.Groups {
		err = errors.Join(err, joinGroup(g, u.Name))
	}
	if u.Sudo != "" {
		err = errors.Join(err, os.MkdirAll("/etc/sudoers.d", 0o750), appendLine("/etc/sudoers.d/90-cloud-init-users", sudoLines(u), 0o440))
	}
	if err != nil || u.NoHome {
		return err
	}
	if err := os.MkdirAll(u.Home, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Chown(u.Home, uid, gid), authorize(u.Home, u.Keys, uid, gid))
}

func passwdLine(u userdata.User, uid, gid int) string {
	return fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", u.Name, uid, gid, u.Comment, u.Home, cmp.Or(u.Shell, "/bin/bash"))
}

// shadowLine lets nobody log in with a password if the user has none.
func shadowLine(u userdata.User) string {
	return fmt.Sprintf("%s:%s:20000:0:99999:7:::", u.Name, cmp.Or(u.Password, "*"))
}

// sudoLines are the rules of a user, one per line.
func sudoLines(u userdata.User) string {
	return u.Name + " " + strings.ReplaceAll(u.Sudo, "\n", "\n"+u.Name+" ")
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
	return os.WriteFile("/etc/group", []byte(withMember(string(data), group, member)), 0o644) //nolint:gosec // public
}

// withMember adds a member to a group of a file of groups, once.
func withMember(groups, group, member string) string {
	lines := strings.Split(groups, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, group+":") {
			continue
		}
		head, members := line[:strings.LastIndex(line, ":")+1], line[strings.LastIndex(line, ":")+1:]
		all := strings.FieldsFunc(members, func(r rune) bool { return r == ',' })
		if !slices.Contains(all, member) {
			all = append(all, member)
		}
		lines[i] = head + strings.Join(all, ",")
	}
	return strings.Join(lines, "\n")
}

// freeID returns the first ID from 1000 that the file does not contain.
func freeID(file string) int {
	data, _ := os.ReadFile(file)
	return unusedID(string(data))
}

func unusedID(entries string) int {
	var used []int
	for line := range strings.Lines(entries) {
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
	for _, key := range missingKeys(string(have), keys) {
		if err := appendLine(file, key, 0o600); err != nil {
			return err
		}
	}
	return errors.Join(os.Chown(dir, uid, gid), os.Chown(file, uid, gid))
}

// missingKeys are those that a file of keys lacks, each once.
func missingKeys(have string, keys []string) []string {
	var missing []string
	for _, key := range keys {
		if key = strings.TrimSpace(key); key != "" && !strings.Contains(have, key) && !slices.Contains(missing, key) {
			missing = append(missing, key)
		}
	}
	return missing
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
		call := mountCall(m)
		if strings.HasPrefix(m.Source, "LABEL=") {
			if err := os.MkdirAll(call.source, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(call.source, call.target, call.kind, call.flags, ""); err != nil {
			return fmt.Errorf("mounting %q on %q: %w", m.Source, m.Target, err)
		}
	}
	return nil
}

// mountCall is the call of mount(2) for an entry of a file system table. A label can't name a
// directory outside of disksDir.
func mountCall(m userdata.Mount) mount {
	call := mount{source: m.Source, target: m.Target, flags: unix.MS_BIND}
	if label, ok := strings.CutPrefix(m.Source, "LABEL="); ok {
		call.source = filepath.Join(disksDir, filepath.Base(label))
	}
	if m.Source == "tmpfs" || m.Kind == "tmpfs" {
		call.flags, call.kind = 0, "tmpfs"
	}
	return call
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
