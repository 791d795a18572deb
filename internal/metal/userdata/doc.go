// Package userdata reads what machines boot from: cloud-configs, also as Jinja templates, scripts,
// and several of them in one MIME message, plain, compressed or in base64. It is the only reader of
// that format. Controllers fill in placeholders ([Fill]) and find mistakes before they order a
// device ([Check]), the Packet API server judges what it is asked to ([Validate]), and the drivers
// of local and simulated machines turn it into a [Plan] ([Parse]).
//
// It is pure: carrying out a plan is the task of package guest. It ignores nothing silently: a plan
// notes every key that has no effect. Errors never repeat more than the beginning of userdata,
// which may hold secrets.
package userdata

import "io/fs"

// Plan is what a machine does at its first boot, in the order of the fields. Boot commands run at
// every boot.
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
	// Notes are what the plan skips.
	Notes []Note
}

// Note is something in the userdata that has no effect, or another one than usual.
type Note struct {
	Key  string
	Text string
}

func (n Note) String() string { return n.Key + ": " + n.Text }

// Command is either a line for a shell or the words of a command.
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
	// Deferred files are written after users are created.
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

// Disk is a file system, which a local machine has a directory for.
type Disk struct {
	Label string
}

// Mount is an entry of a file system table.
type Mount struct {
	Source, Target, Kind, Options string
}

// Script is a program in text form. Scripts run after all commands.
type Script struct {
	Name    string
	Content []byte
}

// Power is what happens after the boot: "", "poweroff" or "reboot".
type Power string

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool {
	return len(p.Boot)+len(p.Files)+len(p.Users)+len(p.Commands)+len(p.Scripts)+len(p.Mounts)+len(p.RootKeys) == 0
}
