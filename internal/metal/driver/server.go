package driver

import (
	"context"
	"io"
	"net/netip"
)

// Server is a server of the inventory, as drivers see it. Metal decides which machine has it.
type Server struct {
	ID, Name string
	SSH      SSH
	Secrets  Secrets
	// Facts are those of the last inspection.
	Facts Facts
}

// SSH is how to reach a server that has an operating system.
type SSH struct {
	// Host is a name or an address.
	Host string `json:"host"`
	// Port is 22 if it is 0.
	Port int `json:"port,omitempty"`
	// User is root, or a user who may become root with sudo and without a password.
	User string `json:"user"`
	// KeyFile is a file with a private key on the host of metal.
	KeyFile string `json:"keyFile,omitempty"`
	// AgentSocket is the socket of an SSH agent on the host of metal.
	AgentSocket string `json:"agentSocket,omitempty"`
	// HostKey is the public key of the server, in the form of an authorized_keys line. Without one,
	// the first connection pins it.
	HostKey string `json:"hostKey,omitempty"`
	// Bastion is the server through which this one is reached, if any.
	Bastion *SSH `json:"bastion,omitempty"`
}

// Secrets are what opens a server. They never leave metal.
type Secrets struct {
	Password        string `json:"password,omitempty"`
	KeyPassphrase   string `json:"keyPassphrase,omitempty"`
	BastionPassword string `json:"bastionPassword,omitempty"`
	BMCPassword     string `json:"bmcPassword,omitempty"`
}

// Facts are what an inspection found out about a server.
type Facts struct {
	Arch        string `json:"arch,omitempty"`
	OS          string `json:"os,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	CPUs        int    `json:"cpus,omitempty"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	// DiskBytes and FreeDiskBytes are those of the file system of /var/lib.
	DiskBytes     int64 `json:"diskBytes,omitempty"`
	FreeDiskBytes int64 `json:"freeDiskBytes,omitempty"`
	// Address is the address of the interface of the default route, with the length of its network.
	Address netip.Prefix `json:"address,omitzero"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	Link    string       `json:"link,omitempty"`
	MAC     string       `json:"mac,omitempty"`
	// MachineID survives a change of the address.
	MachineID string `json:"machineID,omitempty"`
}

// Problem is why a server can't be used, and what to do about it.
type Problem struct {
	// Check is the name of the check that found it.
	Check   string `json:"check"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// Inspector is implemented by drivers whose machines are servers of the inventory. Such machines
// have the addresses of their servers.
type Inspector interface {
	// Inspect connects to a server that no machine has and returns its facts and everything that
	// prevents its use. It changes nothing on the server.
	Inspect(ctx context.Context, s Server) (Facts, []Problem, error)
	// Clean removes everything that Drover has installed on a server, and verifies that.
	Clean(ctx context.Context, s Server) error
}

// Operator is implemented by drivers that can restart servers which no machine has, and read what
// happened on any server.
type Operator interface {
	// PowerServer shuts a server down or restarts it. It returns before that is complete.
	PowerServer(ctx context.Context, s Server, action ServerPower) error
	// ServerConsole returns the end of the log of a server and, if follow is set, later output until
	// the context ends.
	ServerConsole(ctx context.Context, s Server, follow bool) (io.ReadCloser, error)
}

// ServerPower is what happens to the power of a server. Without a management controller, nothing
// turns it on.
type ServerPower string

// Values of ServerPower, as systemctl names them.
const (
	ShutDown ServerPower = "poweroff"
	Restart  ServerPower = "reboot"
)

// Inventory is implemented by sinks that give machines servers.
type Inventory interface {
	// ServerOf returns the server that a machine has, also while the machine is being removed.
	ServerOf(id string) (Server, bool, error)
	// PinHostKey records the host key that a server, or its bastion, presented first.
	PinHostKey(server, host, key string) error
}

// UncleanError means that a machine is gone, but that what is left of it on its server makes the
// server unusable for others.
type UncleanError struct{ Problem Problem }

func (e *UncleanError) Error() string { return e.Problem.Message }
