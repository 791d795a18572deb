package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/base/process"
)

// States of a component.
const (
	Stopped   = "Stopped"
	Starting  = "Starting"
	Ready     = "Ready"
	Unready   = "Unready"   // it served before and does not respond now
	Backoff   = "Backoff"   // it exited and will be restarted
	CrashLoop = "CrashLoop" // it exited several times in a row
)

// ComponentStatus describes one component.
type ComponentStatus struct {
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	PID      int       `json:"pid,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"lastExit,omitempty"`
	LogTail  []string  `json:"logTail,omitempty"`
	Log      string    `json:"log"`
	// MemoryBytes is filled in by readers, since it keeps changing.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
}

// Ready reports whether the component is ready.
func (s ComponentStatus) Ready() bool { return s.State == Ready }

// State is what the supervisor publishes in a file that every command can read, even after the
// supervisor has exited.
type State struct {
	Home       string `json:"home"`
	Phase      string `json:"phase"`
	API        string `json:"api"`
	Drover     string `json:"drover"`
	Kubernetes string `json:"kubernetes"`
	ClusterAPI string `json:"clusterAPI"`
	// PacketAPI is the manager's default Packet API, or "".
	PacketAPI string `json:"packetAPI,omitempty"`
	// Registry is the URL of the registry on this machine.
	Registry string `json:"registry,omitempty"`
	// GitOps reports whether the plane runs the Flux controllers.
	GitOps bool `json:"gitOps,omitempty"`
	// GitWebhook is the URL at which Git servers announce pushes, if the plane runs GitOps.
	GitWebhook string `json:"gitWebhook,omitempty"`
	// Backups is filled in by readers: what became of the scheduled backups, if any were due.
	Backups    *BackupState      `json:"backups,omitempty"`
	Supervisor process.Process   `json:"supervisor"`
	Components []ComponentStatus `json:"components"`
	// Children identifies the processes of the components, so that a later start can kill those
	// that outlived the supervisor.
	Children []process.Process `json:"children,omitempty"`
}

// Phases of a plane, as State.Phase. Killed is never written: readers infer it if the supervisor
// was killed.
const (
	PhaseStarting = "Starting"
	PhaseReady    = "Ready"
	PhaseDegraded = "Degraded"
	PhaseStopping = "Stopping"
	PhaseStopped  = "Stopped"
	PhaseKilled   = "Killed"
)

// ErrNoPlane means that the home never had a plane.
var ErrNoPlane = errors.New("no plane in this home")

// ReadState reads the state of the plane in h.
func ReadState(h Home) (State, error) {
	if err := h.Check(); err != nil {
		return State{}, err
	}
	s, err := h.readState()
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, fmt.Errorf("home %q: %w", h.Dir, ErrNoPlane)
	}
	if err != nil {
		return State{}, err
	}
	s.Backups = h.ReadBackups()
	if !h.Running() {
		return s.ended(), nil
	}
	for i := range s.Components {
		s.Components[i].MemoryBytes = process.MemoryBytes(s.Components[i].PID)
	}
	return s, nil
}

func (s State) component(name string) ComponentStatus {
	i := slices.IndexFunc(s.Components, func(c ComponentStatus) bool { return c.Name == name })
	if i < 0 {
		return ComponentStatus{}
	}
	return s.Components[i]
}

func (h Home) readState() (State, error) {
	var s State
	data, err := os.ReadFile(h.stateFile())
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("parsing state file %q: %w", h.stateFile(), err)
	}
	return s, nil
}

// ended corrects the state of a supervisor that can no longer update it.
func (s State) ended() State {
	if s.Phase != PhaseStopped {
		s.Phase = PhaseKilled
	}
	for i := range s.Components {
		s.Components[i].State, s.Components[i].PID = Stopped, 0
	}
	s.Supervisor, s.Children = process.Process{}, nil
	return s
}
