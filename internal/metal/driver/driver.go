// Package driver is the seam between the metal API and what its machines are
// made of. It holds the interface that a kind of machine implements, the
// interface through which it reports, and the values that pass between them.
// It has no behaviour of its own and imports nothing of ours. Start with
// Driver.
package driver

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Driver makes machines exist. Metal owns what is wanted, the driver owns what
// is there. Every call names a machine by the id of its device and may be
// repeated any number of times, also after either side was killed half way.
type Driver interface {
	// Networks says from which prefixes addresses may be given out. A zero
	// value leaves the choice to metal.
	Networks() Networks
	// Ensure makes the machine exist and be powered as wanted. It returns
	// soon; progress comes through the Sink.
	Ensure(ctx context.Context, m Machine, power Power) error
	// Reinstall wipes the machine and provisions it anew, and returns soon.
	Reinstall(ctx context.Context, m Machine) error
	// Remove leaves nothing of the machine behind when it returns nil.
	// Removing what is not there is no error.
	Remove(ctx context.Context, id string) error
	// SetAddresses makes the machine answer on exactly these elastic
	// addresses, besides those it was made with.
	SetAddresses(ctx context.Context, id string, elastic []netip.Addr) error
	// Known lists the machines that exist, for finding leftovers at start.
	Known(ctx context.Context) ([]string, error)
	// Close stops watching. Machines that can go on without us do so.
	Close() error
}

// New makes a driver. It may report through the Sink before it returns.
type New func(ctx context.Context, c Config) (Driver, error)

// Config is what every driver is given.
type Config struct {
	// Home is a directory for the driver alone; it exists and is private.
	Home string
	Sink Sink
	Log  *slog.Logger
	// Speed is how many times faster than life a simulated clock runs.
	// Drivers of real machines ignore it.
	Speed float64
	// Unused says that nothing has an address yet, so that a driver may choose
	// other networks than it had before.
	Unused bool
}

// Sink is how a driver reports. Report records the event durably and may be
// called from any goroutine, also for machines that no longer exist.
type Sink interface {
	Report(id string, e Event)
}

// Machine is what a driver is asked to run.
type Machine struct {
	ID       string
	Hostname string
	Plan     string
	OS       string
	// CPUs and MemoryBytes come from the plan.
	CPUs        int
	MemoryBytes int64
	// Userdata is as the user gave it.
	Userdata []byte
	// Addresses are the management addresses: public IPv4 first, then private
	// IPv4, then IPv6 where the driver has it.
	Addresses []Address
	// SSHKeys are public keys in the form of an authorized_keys line.
	SSHKeys  []string
	Tags     []string
	Instance InstanceData
}

// InstanceData is what cloud-init calls v1 in its templates.
type InstanceData struct {
	InstanceID       string `json:"instance_id"`
	LocalHostname    string `json:"local_hostname"`
	Region           string `json:"region"`
	AvailabilityZone string `json:"availability_zone"`
	CloudName        string `json:"cloud_name"`
	Platform         string `json:"platform"`
	Distro           string `json:"distro"`
	DistroVersion    string `json:"distro_version"`
}

// Address is one address of a machine with the network it lies in.
type Address struct {
	IP         netip.Addr
	Prefix     netip.Prefix
	Gateway    netip.Addr
	Public     bool
	Management bool
}

// Networks are the prefixes that addresses come from. A prefix that is not
// set is not used, except that metal falls back to its own defaults when
// neither Public nor Private is.
type Networks struct {
	// Public also holds the elastic addresses.
	Public   netip.Prefix
	Private  netip.Prefix
	PublicV6 netip.Prefix
	// Flat means that each prefix is one network, whose first address is the
	// gateway of all machines. Otherwise every machine gets a network of two
	// addresses of its own, the first of which is its gateway.
	Flat bool
}

// Power is the power state that is wanted.
type Power string

// Power states.
const (
	On  Power = "on"
	Off Power = "off"
)

// Phase is where a machine is in its life, as its driver sees it.
type Phase string

// Phases.
const (
	Provisioning Phase = "Provisioning"
	Running      Phase = "Running"
	Stopped      Phase = "Off"
	Failed       Phase = "Failed"
)

// Event is one report about a machine. An empty Phase leaves the phase as it
// is, so that an event can just tell something.
type Event struct {
	Phase Phase
	// Percent is how much of provisioning is done.
	Percent int
	// Type is a Packet event type such as provisioning.104, power.201 or
	// user-state; empty adds nothing to the device's events.
	Type    string
	Message string
	// Time is when it happened; zero means now.
	Time time.Time
}

// Console is a driver whose machines have a console.
type Console interface {
	// Console returns what the machine wrote so far and, if follow is set,
	// what it goes on to write until the context ends.
	Console(ctx context.Context, id string, follow bool) (io.ReadCloser, error)
}

// Metadata is a driver whose machines can reach a metadata service. Metal
// serves on the listener and tells callers apart by their source address.
type Metadata interface {
	MetadataListener() (net.Listener, error)
}

// Host is a driver whose machines share a network with this host.
type Host interface {
	// HostAddress is the host's own in that network.
	HostAddress() netip.Addr
}

// Stdio are the streams of a process in a machine.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	TTY      bool
}

// Shell is a driver that can run a process inside a machine.
type Shell interface {
	Enter(ctx context.Context, id string, argv []string, stdio Stdio) error
}
