package workflow

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event tells what happens in a run.
type Event struct {
	Phase  string
	Status Status
	// Detail is what is waited for, or why a phase was skipped or failed.
	Detail string
	Took   time.Duration
}

// Status is what an event is about.
type Status int

// A phase is started once and ends in one of Done, Before, Skipped, Failed and Interrupted. Waiting and Note come in between.
const (
	Started Status = iota
	// Waiting says what is being waited for from now on.
	Waiting
	// Note says something that stays worth knowing.
	Note
	Done
	// Before means that it was done by an earlier run.
	Before
	Skipped
	Failed
	Interrupted
)

// Progress is how a phase speaks to the user and to later runs of itself. A nil one tells nobody, and there was no run before.
type Progress struct {
	phase string
	run   *run
}

// Waiting tells what is being waited for. Saying the same again tells nothing.
func (p *Progress) Waiting(format string, args ...any) {
	if p == nil {
		return
	}
	detail := fmt.Sprintf(format, args...)
	p.run.mu.Lock()
	same := p.run.waiting == detail
	p.run.waiting = detail
	p.run.mu.Unlock()
	if !same {
		p.run.tell(Event{Phase: p.phase, Status: Waiting, Detail: detail})
	}
}

// Note tells something that stays worth knowing.
func (p *Progress) Note(format string, args ...any) {
	if p == nil {
		return
	}
	p.run.tell(Event{Phase: p.phase, Status: Note, Detail: fmt.Sprintf(format, args...)})
}

// Resumed tells whether an earlier run of this command came beyond its first phase and did not finish, so that what is there may be its
// work.
func (p *Progress) Resumed() bool { return p != nil && p.run.resumed }

// Keep records a value at once, for later phases and for later runs should this one not come to its end. Never keep a secret.
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

// Kept reads what was recorded under the key into value, and tells whether anything was.
func (p *Progress) Kept(key string, value any) (bool, error) {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	data, ok := p.run.now.Kept[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, fmt.Errorf("reading %q of the record: %w", key, err)
	}
	return true, nil
}
