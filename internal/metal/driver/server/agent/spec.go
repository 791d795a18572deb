package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/kube/node"
)

// Paths on a server.
const (
	// Program is where the driver puts the drover program.
	Program = node.ServerDir + "/agent"
	// Blobs has the files of the spec, by digest.
	Blobs = node.ServerDir + "/blobs"
	// StateDir has what the agent knows, and can't be read by others.
	StateDir = "/var/lib/drover-server"
	// Unit provisions the server, also after a reboot, until that is complete.
	Unit = "drover-provision.service"
	// UpgradeUnit upgrades Kubernetes on the server, also after a reboot, until that has ended.
	UpgradeUnit = "drover-upgrade.service"
)

// Spec is what a server becomes. It contains secrets.
type Spec struct {
	// Device is the ID of the device. A server has one at a time.
	Device   string `json:"device"`
	Hostname string `json:"hostname"`
	// Address is that of the server among the other nodes, and Link where it has it.
	Address netip.Addr `json:"address"`
	Link    string     `json:"link"`
	// Endpoint is the address that the server moves together with others, if it does.
	Endpoint netip.Addr `json:"endpoint,omitzero"`
	// Files maps paths to the digests of blobs, Links paths to paths.
	Files map[string]string `json:"files"`
	Links map[string]string `json:"links"`
	// Images is the digest of the archive of container images, and Sandbox the image of every Pod.
	Images    string         `json:"images"`
	Sandbox   string         `json:"sandbox"`
	SSHKeys   []string       `json:"sshKeys,omitempty"`
	Userdata  []byte         `json:"userdata,omitempty"`
	Variables map[string]any `json:"variables,omitempty"`
}

// Phase is how far the agent is.
type Phase string

// Phases.
const (
	// Empty means that the server is no device.
	Empty Phase = ""
	// Installing means that programs are being installed.
	Installing Phase = "Installing"
	// Executing means that the userdata is being executed.
	Executing Phase = "Executing"
	// Done means that the userdata was executed, successfully or not.
	Done Phase = "Done"
	// Upgrading means that a server that was provisioned gets another version of Kubernetes.
	Upgrading Phase = "Upgrading"
	// CleaningUp means that the server is being restored.
	CleaningUp Phase = "CleaningUp"
)

// State is what the agent has recorded.
type State struct {
	Device string `json:"device,omitempty"`
	Phase  Phase  `json:"phase,omitempty"`
	// Links and Tables are the network interfaces and packet filter tables that were there before.
	Links  []string `json:"links,omitempty"`
	Tables []string `json:"tables,omitempty"`
	// Hostname is the former host name.
	Hostname string `json:"hostname,omitempty"`
	// Upgrade is the last upgrade in place.
	Upgrade *Upgraded `json:"upgrade,omitempty"`
}

func path(name string) string { return filepath.Join(StateDir, name) }

const (
	specFile   = "spec.json"
	stateFile  = "state.json"
	eventsFile = "events.jsonl"
)

// readJSON reads a file of the state directory. A missing one leaves v as it is.
func readJSON(name string, v any) error {
	data, err := os.ReadFile(path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading %q: %w", path(name), err)
	}
	return nil
}

func writeJSON(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(StateDir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path(name), data, 0o600)
}

func readState() (State, error) {
	var s State
	err := readJSON(stateFile, &s)
	return s, err
}
