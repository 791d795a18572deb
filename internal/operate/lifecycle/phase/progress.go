package phase

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event reports what happens in a run.
type Event struct {
	Phase  string
	Status Status
	// Detail is the current activity, or why a phase was skipped or failed.
	Detail string
	Took   time.Duration
}

// Status is the kind of an event.
type Status int

// A phase is started once and ends in one of Done, Before, Skipped, Failed and Interrupted. Waiting
// and Note come in between.
const (
	Started Status = iota
	// Waiting reports what the phase is doing from now on.
	Waiting
	// Note reports something that remains worth knowing.
	Note
	Done
	// Before means that an earlier run did the phase.
	Before
	Skipped
	Failed
	Interrupted
)

// Progress is how a phase reports to the user, and keeps values for later phases and runs. A nil
// Progress reports to nobody and belongs to a first run.
type Progress struct {
	phase string
	run   *run
}

// Waiting reports the current activity: a present participle and its object, such as "Creating
// control plane machine 1/3". Repeating the last activity reports nothing.
func (p *Progress) Waiting(format string, args ...any) {
	if p == nil {
		return
	}
	detail := fmt.Sprintf(format, args...)
	p.run.mu.Lock()
	same := p.run.activity == detail
	p.run.activity = detail
	p.run.mu.Unlock()
	if !same {
		p.run.report(Event{Phase: p.phase, Status: Waiting, Detail: detail})
	}
}

// Note reports something that remains worth knowing.
func (p *Progress) Note(format string, args ...any) {
	if p == nil {
		return
	}
	p.run.report(Event{Phase: p.phase, Status: Note, Detail: fmt.Sprintf(format, args...)})
}

// Resumed reports whether an earlier run of this command got beyond its first phase and did not
// finish, so that what exists may be its work.
func (p *Progress) Resumed() bool { return p != nil && p.run.resumed }

// Keep records a value at once, for later phases and for a run that resumes this one. Never keep a
// secret.
func (p *Progress) Keep(key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("recording %q: %w", key, err)
	}
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	if p.run.now.Kept == nil {
		p.run.now.Kept = map[string]json.RawMessage{}
	}
	p.run.now.Kept[key] = data
	return p.run.save()
}

// Kept reads the value that was kept under the key, and reports whether there is one.
func (p *Progress) Kept(key string, value any) (bool, error) {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	data, ok := p.run.now.Kept[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, fmt.Errorf("reading %q from the checkpoint: %w", key, err)
	}
	return true, nil
}
