package guest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// Names under which the drover program acts as something else: the first argument, or the name of
// the program inside a machine.
const (
	InitCommand = "machine-init"
	// ReadyFD is the file descriptor on which the first process waits until the host has connected
	// the machine's network.
	ReadyFD = 3
	// SpecFD, EventsFD and ExitFD are the file descriptors of the files of these names.
	SpecFD   = 4
	EventsFD = 5
	ExitFD   = 6
	// LinkName is the name of the machine's only link to the host.
	LinkName = "eth0"
)

// Spec is the configuration of the first process. It may contain secrets.
type Spec struct {
	ID       string
	Hostname string
	// Dir is the machine's directory and Lower the lower layer of its root,
	// as the host sees them; Program is the drover program.
	Dir, Lower, Program string
	// HostUsers makes users of the machine the same users on the host, as on kernels that can't map
	// them.
	HostUsers bool
	// Mapped means that the host has mapped users of the machine before, so it always can.
	Mapped      bool
	CPUs        int
	MemoryBytes int64
	Addresses   []Address
	Elastic     []netip.Addr
	// Endpoint is the address that the machine moves together with others, if it does.
	Endpoint netip.Addr
	// Images is the host's directory of image archives, if any.
	Images string
	// Metadata is the address of the metadata service, if any.
	Metadata netip.AddrPort
	SSHKeys  []string
	// Userdata is executed at the first boot, and deleted afterwards.
	Userdata []byte
	// Later is what remains of the userdata after the first boot: the steps of every boot.
	Later *userdata.Plan
	// Variables are the variables of userdata templates.
	Variables map[string]any
	// Reinstalled counts how often the machine was wiped.
	Reinstalled int
}

// Address is an address of the machine in its network.
type Address struct {
	IP      netip.Addr
	Prefix  netip.Prefix
	Gateway netip.Addr
}

// Files in the directory of a machine.
const (
	SpecFile    = "spec.json"
	EventsFile  = "events.jsonl"
	ConsoleFile = "console.log"
	// ExitFile contains why the first process exited: one of the words below, or nothing if it was
	// killed.
	ExitFile = "exit"

	ExitPowerOff = "poweroff"
	ExitReboot   = "reboot"
	ExitFailed   = "failed" // It has reported why.
)

// DataDirs are directories that can't be on an overlay. Each is stored in the directory "data" of
// the machine.
func DataDirs() map[string]string {
	return map[string]string{"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet", "etcd": "/var/lib/etcd"}
}

// ReadSpec reads the spec that the driver wrote.
func ReadSpec(dir string) (Spec, error) {
	var s Spec
	data, err := os.ReadFile(filepath.Join(dir, SpecFile))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("reading %q: %w", filepath.Join(dir, SpecFile), err)
	}
	return s, nil
}

// Write writes the spec.
func (s Spec) Write(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, SpecFile), data, 0o600)
}

// UserState is the type of events about the execution of the userdata.
const UserState = "user-state"

// Event is one line of the file of events.
type Event struct {
	Time    time.Time `json:"time"`
	Phase   string    `json:"phase,omitempty"`
	Percent int       `json:"percent,omitempty"`
	Type    string    `json:"type"`
	Message string    `json:"message"`
}
