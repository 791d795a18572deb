// Package driver defines the interface between the metal API and its machines: the interface that a
// driver implements, the interface through which it reports, and the values that pass between them.
// It has no behavior of its own and imports nothing of ours. Start with Driver.
package driver

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Driver runs machines. Metal owns the desired state, the driver owns the machines. Every call
// names a machine by the ID of its device and may be repeated any number of times, also after
// either side was killed halfway.
type Driver interface {
	// Networks returns the prefixes that addresses may be allocated from. The zero value leaves the
	// choice to metal.
	Networks() Networks
	// Ensure provisions the machine if necessary and sets its power state. It returns soon; the
	// driver reports progress through the Sink. Metal deletes userdata after the first boot, so
	// a driver keeps what later boots need.
	Ensure(ctx context.Context, m Machine, power Power) error
	// Reinstall wipes the machine, starts provisioning it again, and returns soon.
	Reinstall(ctx context.Context, m Machine) error
	// Remove removes the machine completely before it returns nil. Removing a missing machine is
	// not an error.
	Remove(ctx context.Context, id string) error
	// SetAddresses makes the machine respond on exactly these elastic addresses, in addition to its
	// management addresses.
	SetAddresses(ctx context.Context, id string, elastic []netip.Addr) error
	// Known lists the existing machines, to find leftovers at start.
	Known(ctx context.Context) ([]string, error)
	// Close stops watching. Machines keep running where possible.
	Close() error
}

// New creates a driver. It may report through the Sink before it returns.
type New func(ctx context.Context, c Config) (Driver, error)

// Config is the configuration of every driver.
type Config struct {
	// Home is a private, existing directory for the driver alone.
	Home string
	Sink Sink
	Log  *slog.Logger
	// Speed is the factor of a simulated clock. Drivers of real machines ignore it.
	Speed float64
	// Unused means that no address is assigned yet, so the driver may select other networks than
	// before.
	Unused bool
}

// Sink receives a driver's reports. Report records the event durably and may be called from any
// goroutine, also for machines that no longer exist. It logs the error that it returns.
type Sink interface {
	Report(id string, e Event) error
}

// Router is implemented by sinks that decide which addresses machines may announce with BGP.
// Whenever the answer may have changed, SetAddresses is called.
type Router interface {
	// MayAnnounce reports whether the machine has a BGP session and its project the address.
	MayAnnounce(id string, address netip.Addr) bool
}

// Machine is the specification of a machine.
type Machine struct {
	ID       string
	Hostname string
	Plan     string
	OS       string
	// CPUs and MemoryBytes come from the plan.
	CPUs        int
	MemoryBytes int64
	// Userdata is unmodified.
	Userdata []byte
	// Addresses are the management addresses: public IPv4 first, then private
	// IPv4, then IPv6 where the driver has it.
	Addresses []Address
	// SSHKeys are public keys in the form of an authorized_keys line.
	SSHKeys []string
	Tags    []string
	// Endpoint is the address that the machine moves together with the other machines that have it
	// here, where the driver's networks allow that. It is never among its elastic addresses.
	Endpoint netip.Addr
	Instance InstanceData
	// Server is the server that the machine has, with drivers that implement Inspector.
	Server *Server
	// Cycle means that a machine that is being turned off is to be turned on again.
	Cycle bool
}

// InstanceData is v1 in the templates of cloud-init.
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

// Address is an address of a machine and its network.
type Address struct {
	IP         netip.Addr
	Prefix     netip.Prefix
	Gateway    netip.Addr
	Public     bool
	Management bool
}

// Networks are the prefixes of addresses. An unset prefix is not used, except that metal falls back
// to its own defaults if neither Public nor Private is set.
type Networks struct {
	// Public also contains the elastic addresses.
	Public   netip.Prefix
	Private  netip.Prefix
	PublicV6 netip.Prefix
	// Flat means that each prefix is one network whose first address is the gateway of all
	// machines. Otherwise every machine gets its own network of two addresses, the first of which
	// is its gateway.
	Flat bool
	// Own means that machines have addresses of their own, which metal doesn't choose. Only elastic
	// addresses are allocated, from Public if it is set.
	Own bool
	// Endpoints means that control plane machines move the address of their cluster's endpoint among
	// themselves.
	Endpoints bool
}

// Power is the desired power state.
type Power string

// Power states.
const (
	On  Power = "on"
	Off Power = "off"
)

// Phase is the phase of a machine as observed by its driver.
type Phase string

// Phases.
const (
	Provisioning Phase = "Provisioning"
	Running      Phase = "Running"
	Stopped      Phase = "Off"
	Failed       Phase = "Failed"
)

// UserdataClosed is the type of the event that ends the time in which a machine may read its
// userdata from the metadata service: from now on, software of others may run on it.
const UserdataClosed = "userdata.closed"

// Event is a report about a machine. An empty Phase keeps the current phase.
type Event struct {
	Phase Phase
	// Percent is the progress of provisioning.
	Percent int
	// Type is a Packet event type such as provisioning.104, power.201 or user-state. Empty adds no
	// event to the device.
	Type    string
	Message string
	// Time is when the event happened; zero means now.
	Time time.Time
}

// Console is implemented by drivers whose machines have a console.
type Console interface {
	// Console returns the console output of the machine and, if follow is set, later output until
	// the context ends.
	Console(ctx context.Context, id string, follow bool) (io.ReadCloser, error)
}

// Metadata is implemented by drivers whose machines can reach a metadata service. Metal serves on
// the listener and identifies callers by their source address.
type Metadata interface {
	MetadataListener() (net.Listener, error)
}

// Host is implemented by drivers whose machines share a network with this host.
type Host interface {
	// HostAddress returns the host's address in that network.
	HostAddress() netip.Addr
}

// Supplier is implemented by drivers that know what they can provide. Machines of other drivers are
// unlimited.
type Supplier interface {
	// Supply returns what there is now, including what machines already use. It returns quickly.
	Supply() (Supply, error)
}

// Upgrader is implemented by drivers that can change the Kubernetes version of a machine that runs,
// without reinstalling it.
type Upgrader interface {
	// Upgrade installs the programs and container images of a Kubernetes version on a machine, lets
	// kubeadm upgrade it, restarts its kubelet, and returns when that is done. It never drains the
	// node, and leaves it as it was if the machine runs the version already. It may be repeated, also
	// after either side was killed halfway; metal never repeats it before the last call has ended.
	Upgrade(ctx context.Context, m Machine, version string) error
}

// Supply is what a driver has for machines.
type Supply struct {
	// Host is what all machines share if they run on one host.
	Host *Resources
	// FreeDiskBytes is what is left on the disk of the host.
	FreeDiskBytes int64
}

// Resources are an amount of what machines use.
type Resources struct {
	CPUs, MemoryBytes, DiskBytes int64
}

// Stdio are the standard streams of a process in a machine.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	TTY      bool
}

// Shell is implemented by drivers that can run a process inside a machine.
type Shell interface {
	Enter(ctx context.Context, id string, argv []string, stdio Stdio) error
}
