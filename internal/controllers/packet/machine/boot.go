package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

// userState is the type of the events in which a machine tells how its own setup goes.
const userState = "user-state"

// What such an event begins with.
const (
	stateSucceeded = "succeeded"
	stateFailed    = "failed"
	stateRunning   = "running"
	// stateNote is about something in the userdata that has no effect.
	stateNote = "running: userdata: "
)

// provisioningFailed is the type of the event that says why a device failed.
const provisioningFailed = "provisioning.failed"

// maxNotes bounds how much of the userdata's leftovers a message lists.
const maxNotes = 5

// boot is how a machine has fared with its userdata.
type boot struct {
	// joined says that the machine is a node, whatever it said of itself.
	joined bool
	// failed says that it gave up.
	failed bool
	// words are the machine's own.
	words string
}

// watchBoot asks how the machine fares with its userdata, until it has told or has become a node. That is the only place where a mistake in
// the userdata shows; the API itself takes whatever it is given. A machine that tells nothing is a machine all the same, so that this step
// never holds up the others.
func (c *Controller) watchBoot(ctx context.Context, s *scope) (*outcome.Wait, error) {
	if s.device.State != string(infrav1.InstanceActive) || bootIsOver(s.machine) {
		return nil, nil
	}
	events, err := s.api.Events(ctx, s.device.ID)
	if err != nil && outcome.Of("reading the result of the boot", err) == nil {
		return nil, err
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Events of the device could not be read", "device", s.device.ID, "error", err.Error())
	}
	s.boot = bootOf(events)
	if s.owner.Status.NodeRef.IsDefined() {
		s.boot = joined(events)
	}
	if s.boot == nil || s.boot.failed || s.boot.words == stillRunning {
		s.again(bootPoll(s.age()))
	}
	return nil, nil
}

// stillRunning is told of a machine that has become a node before its userdata was through. The first one of a control plane does: what
// others wait for, such as the cluster's configuration, comes after. That this passes is an event for all who look at the Machine.
const stillRunning = "The userdata is still running"

func bootIsOver(m *infrav1.PacketMachine) bool {
	c := conditions.Get(m, infrav1.BootstrapExecSucceeded)
	return c != nil && c.Status == metav1.ConditionTrue && c.Message != stillRunning
}

// bootOf reads a machine's own words from events, newest first. It returns nil if the machine has not come to an end yet.
func bootOf(events []client.Event) *boot {
	for i, e := range events {
		end := endOf(e)
		if end == nil {
			continue
		}
		if !end.failed {
			end.words = leftOut(events[i+1:])
		}
		return end
	}
	return nil
}

// joined is the boot of a machine that is a node. Whatever it said of itself, it can't have failed.
func joined(events []client.Event) *boot {
	if b := bootOf(events); b != nil && !b.failed {
		return &boot{joined: true, words: b.words}
	}
	if words := leftOut(events); words != "" || !running(events) {
		return &boot{joined: true, words: words}
	}
	return &boot{joined: true, words: stillRunning}
}

// running says that the last that was heard of the userdata is that it has begun.
func running(events []client.Event) bool {
	i := slices.IndexFunc(events, func(e client.Event) bool { return e.Type == userState })
	return i >= 0 && strings.HasPrefix(events[i].Body, stateRunning)
}

// leftOut lists what of the userdata had no effect in the last boot, in the order of the userdata.
func leftOut(events []client.Event) string {
	var notes []string
	for _, e := range events {
		if endOf(e) != nil {
			break // that was an earlier boot
		}
		if note, ok := strings.CutPrefix(e.Body, stateNote); ok && e.Type == userState {
			notes = append(notes, note)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	slices.Reverse(notes)
	words := "Userdata without effect: " + strings.Join(notes[:min(len(notes), maxNotes)], "; ")
	if more := len(notes) - maxNotes; more > 0 {
		words += fmt.Sprintf("; and %d more", more)
	}
	return outcome.Bound(words)
}

// endOf reads an event that says how a boot ended; it returns nil for any other.
func endOf(e client.Event) *boot {
	state, words, _ := strings.Cut(e.Body, ":")
	switch {
	case e.Type != userState:
		return nil
	case state == stateSucceeded:
		return &boot{}
	case state == stateFailed:
		return &boot{failed: true, words: outcome.Bound(strings.TrimSpace(words))}
	default:
		return nil
	}
}

// bootPoll is when to ask again: often while a boot may take as long as it does, then as seldom as for anything else.
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

// findCause returns why the device failed, in the words of its events, or "".
func (s *scope) findCause(ctx context.Context) string {
	events, err := s.api.Events(ctx, s.device.ID)
	if err != nil {
		return "" // the state says enough, and is what counts
	}
	i := slices.IndexFunc(events, func(e client.Event) bool { return e.Type == provisioningFailed })
	if i < 0 {
		return ""
	}
	return outcome.Bound(events[i].Body)
}
