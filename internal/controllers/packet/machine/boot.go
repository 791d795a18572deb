package machine

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/metal/client"
)

// userState is the type of the events with which a machine reports on its userdata.
const userState = "user-state"

// States with which such an event begins.
const (
	stateSucceeded = "succeeded"
	stateFailed    = "failed"
	stateRunning   = "running"
	// stateNote precedes a part of the userdata without effect.
	stateNote = "running: userdata: "
)

// provisioningFailed is the type of the event with the cause of a failed device.
const provisioningFailed = "provisioning.failed"

// maxNotes is how many parts of the userdata without effect a message lists.
const maxNotes = 5

const readingBoot = "reading the result of the boot"

// boot is the result of the userdata.
type boot struct {
	// joined means that the machine is a node, whatever it reported.
	joined bool
	// failed means that the userdata failed.
	failed bool
	// message is what the machine reported.
	message string
}

// watchBoot reads the machine's reports until the userdata has ended or the machine has become a
// node. Only these show mistakes in the userdata, since the API accepts whatever it is given. Not
// all machines report, so this step never holds up the others.
func (c *Controller) watchBoot(ctx context.Context, s *scope) error {
	if s.device.State != string(infrav1.InstanceActive) || bootIsOver(s.machine) {
		return nil
	}
	events, err := s.api.Events(ctx, s.device.ID)
	if err != nil && failure.Wait(readingBoot, err) == nil {
		return err
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Reading the events of the device failed", "device", s.device.ID, "error", err.Error())
	}
	s.boot = bootOf(events)
	if s.owner.joined {
		s.boot = joined(events)
	}
	if s.boot == nil || s.boot.failed || s.boot.message == stillRunning {
		s.retryAfter(bootPoll(s.age()))
	}
	return nil
}

// stillRunning is the message about a machine that has become a node before its userdata has ended,
// as the first control plane machine does: what others wait for, such as the cluster's
// configuration, comes after. Its end is an event for everyone who watches the Machine.
const stillRunning = "The userdata is still running"

func bootIsOver(m *infrav1.PacketMachine) bool {
	c := conditions.Get(m, infrav1.BootstrapExecSucceeded)
	return c != nil && c.Status == metav1.ConditionTrue && c.Message != stillRunning
}

// bootOf returns the result of the userdata from events, newest first, or nil if it has not ended.
func bootOf(events []client.Event) *boot {
	for i, e := range events {
		end := endOf(e)
		if end == nil {
			continue
		}
		if !end.failed {
			end.message = withoutEffect(events[i+1:])
		}
		return end
	}
	return nil
}

// joined is the result for a machine that is a node. Whatever it reported, its boot can't have
// failed.
func joined(events []client.Event) *boot {
	if b := bootOf(events); b != nil && !b.failed {
		return &boot{joined: true, message: b.message}
	}
	if message := withoutEffect(events); message != "" || !running(events) {
		return &boot{joined: true, message: message}
	}
	return &boot{joined: true, message: stillRunning}
}

// running reports whether the last report says that the userdata is running.
func running(events []client.Event) bool {
	i := slices.IndexFunc(events, func(e client.Event) bool { return e.Type == userState })
	return i >= 0 && strings.HasPrefix(events[i].Body, stateRunning)
}

// withoutEffect lists the parts of the userdata without effect in the last boot, in their order.
func withoutEffect(events []client.Event) string {
	var notes []string
	for _, e := range events {
		if endOf(e) != nil {
			break // an earlier boot
		}
		if note, ok := strings.CutPrefix(e.Body, stateNote); ok && e.Type == userState {
			notes = append(notes, note)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	slices.Reverse(notes)
	return failure.Truncate("Userdata without effect: " + text.Clauses(notes, maxNotes))
}

// endOf returns the result in an event that ends a boot, or nil for other events.
func endOf(e client.Event) *boot {
	state, rest, _ := strings.Cut(e.Body, ":")
	switch {
	case e.Type != userState:
		return nil
	case state == stateSucceeded:
		return &boot{}
	case state == stateFailed:
		return &boot{failed: true, message: failure.Truncate(strings.TrimSpace(rest))}
	default:
		return nil
	}
}

// bootPoll is when to read the reports again: often at first, then with the state of the device.
func bootPoll(age time.Duration) time.Duration {
	switch {
	case age < 30*time.Second:
		return time.Second
	case age < 2*time.Minute:
		return 3 * time.Second
	case age < 30*time.Minute:
		return 15 * time.Second
	default:
		return 0
	}
}

// findCause returns why the device failed according to its events, or "".
func (s *scope) findCause(ctx context.Context) string {
	events, err := s.api.Events(ctx, s.device.ID)
	if err != nil {
		return "" // the state is enough to go on
	}
	i := slices.IndexFunc(events, func(e client.Event) bool { return e.Type == provisioningFailed })
	if i < 0 {
		return ""
	}
	return failure.Truncate(events[i].Body)
}
