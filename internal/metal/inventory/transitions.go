package inventory

import (
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// TransitionError means that something can't happen to a server in its state.
type TransitionError struct {
	Server, Action string
	State          State
	Remedy         string
}

func (e *TransitionError) Error() string {
	message := fmt.Sprintf("server %q can't be %s while it is %s", e.Server, e.Action, e.State)
	if e.Remedy != "" {
		message += ": " + e.Remedy
	}
	return message
}

// enter changes the state.
func (s *Server) enter(to State, now time.Time, problems ...driver.Problem) {
	if s.State != to {
		s.Since = now
	}
	s.State, s.Problems = to, problems
}

func (s *Server) deny(action, remedy string) error {
	return &TransitionError{Server: s.Name, Action: action, State: s.State, Remedy: remedy}
}

// Checkable reports whether an inspection may decide about the server.
func (s *Server) Checkable() bool {
	return !s.Held() && (s.State == Discovered || s.State == Ready)
}

// RecordInspection records the result of an inspection. The result decides about a server that no
// device has; of others, and of those that wait for a reset, it only updates the facts.
func (s *Server) RecordInspection(facts driver.Facts, problems []driver.Problem, now time.Time) {
	if facts != (driver.Facts{}) {
		s.Facts = facts
	}
	s.Checked = now
	switch {
	case !s.Checkable():
	case len(problems) > 0:
		s.enter(Discovered, now, problems...)
	default:
		s.enter(Ready, now)
	}
}

// Claim gives the server to a device.
func (s *Server) Claim(device string, now time.Time) error {
	if s.DeviceID == device {
		return nil
	}
	if !s.Available() {
		return s.deny("given to a machine", "")
	}
	s.DeviceID = device
	s.enter(Provisioning, now)
	return nil
}

// RecordBoot records that the server has become the machine of its device.
func (s *Server) RecordBoot(device string, now time.Time) {
	if s.DeviceID == device && s.State == Provisioning {
		s.enter(InUse, now)
	}
}

// Release begins to restore the server of a device.
func (s *Server) Release(device string, now time.Time) {
	if s.DeviceID == device && s.State != Failed {
		s.enter(Cleaning, now)
	}
}

// Return ends the use by a device, whose machine has been removed completely or, if there is a
// problem, incompletely.
func (s *Server) Return(device string, unclean *driver.Problem, now time.Time) {
	if s.DeviceID != device {
		return
	}
	s.DeviceID = ""
	if unclean != nil {
		s.enter(Failed, now, *unclean)
		return
	}
	s.enter(Ready, now)
}

// Fail takes a server that no device has out of use.
func (s *Server) Fail(problem driver.Problem, now time.Time) {
	if !s.Held() {
		s.enter(Failed, now, problem)
	}
}

// BeginReset begins to restore a failed server. The result is recorded with Reset or Fail.
func (s *Server) BeginReset() error {
	if s.Held() {
		return s.deny("reset", "delete its machine first")
	}
	return nil
}

// Reset makes a restored server available again, once it is inspected.
func (s *Server) Reset(now time.Time) error {
	if err := s.BeginReset(); err != nil {
		return err
	}
	s.enter(Discovered, now)
	return nil
}

// Removable returns why the server can't leave the inventory.
func (s *Server) Removable() error {
	if s.Held() {
		return s.deny("removed", "delete its machine first")
	}
	return nil
}

// Edit replaces what the owner says. A change of what identifies the server makes another
// inspection necessary.
func (s *Server) Edit(to Spec, now time.Time) error {
	moved := !equalAccess(s.SSH, to.SSH)
	if s.Held() && (moved || s.Project != to.Project || s.Metro != to.Metro || s.Facility != to.Facility || s.Plan != to.Plan) {
		return s.deny("moved", "only its labels, its host key and whether it is drained can change; delete its machine first")
	}
	s.Spec = to
	if moved && s.Checkable() {
		s.enter(Discovered, now)
	}
	return nil
}

// equalAccess reports whether two ways lead to the same server.
func equalAccess(a, b *driver.SSH) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Host == b.Host && a.Port == b.Port && equalAccess(a.Bastion, b.Bastion)
}
