// Package userdata understands what people give a machine to boot from: cloud
// configurations, also as Jinja templates, scripts, and several of them in one
// MIME message, plain or compressed or in base64. It turns them into a [Plan],
// a list of things to do, and says of everything that it can't do that it
// can't. It is pure: carrying a plan out is the work of package guest. Start at
// [Parse].
package userdata

import "io/fs"

// Plan is what a machine does at its first boot, in the order of the fields,
// except that Boot is done at every boot.
type Plan struct {
	Boot     []Command
	Hostname string
	Disks    []Disk
	Mounts   []Mount
	Groups   []string
	Users    []User
	// RootKeys may log in as root.
	RootKeys []string
	Files    []File
	// Timezone is a name such as Europe/Berlin, or empty.
	Timezone string
	Certs    []string // more certificate authorities, in PEM
	Commands []Command
	Scripts  []Script
	Final    string
	Power    Power
	// Notes tell what the plan leaves out.
	Notes []Note
}

// Note is something that was asked for and will not happen, or not as asked.
type Note struct {
	Key  string
	Text string
}

func (n Note) String() string { return n.Key + ": " + n.Text }

// Command is a line for a shell, or the words of a command.
type Command struct {
	Line  string
	Words []string
}

// File is a file to write.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	Owner   string // user, user:group, or empty for root
	Append  bool
	// Deferred files are written after users were made.
	Deferred bool
}

// User is an account.
type User struct {
	Name, Comment, Home, Shell, PrimaryGroup, Sudo string
	UID                                            int // 0: the next free one
	Groups                                         []string
	Keys                                           []string
	Password                                       string // hashed, or empty
	NoHome                                         bool
}

// Disk is a file system that a machine gets a directory for.
type Disk struct {
	Label string
}

// Mount is a line of a file system table.
type Mount struct {
	Source, Target, Kind, Options string
}

// Script is a program in text form, run after all commands.
type Script struct {
	Name    string
	Content []byte
}

// Power says what happens after the boot: "", "poweroff" or "reboot".
type Power string

// Empty tells whether there is nothing to do.
func (p Plan) Empty() bool {
	return len(p.Boot)+len(p.Files)+len(p.Users)+len(p.Commands)+len(p.Scripts)+len(p.Mounts)+len(p.RootKeys) == 0
}
