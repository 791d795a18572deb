package plane

import (
	"encoding/json"
	"io"
	"time"
)

// Event is the progress of one stage of a start.
type Event struct {
	Stage    string        `json:"stage"`
	Status   string        `json:"status"`
	Duration time.Duration `json:"duration,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// States of a stage. AllReady is sent once, at the end. Error explains why a stage failed or was
// skipped.
const (
	StageStarted = "started"
	StageDone    = "done"
	StageSkipped = "skipped"
	StageFailed  = "failed"
	AllReady     = "ready"
)

// Progress receives each event as it happens. A nil Progress discards them.
type Progress func(Event)

// ProgressTo writes events to w, one JSON object a line, for ReadProgress.
func ProgressTo(w io.Writer) Progress {
	encoder := json.NewEncoder(w)
	return func(e Event) { _ = encoder.Encode(e) }
}

// ReadProgress calls p for each event that it reads from r, until the end.
func ReadProgress(r io.Reader, p Progress) {
	decoder := json.NewDecoder(r)
	for {
		var e Event
		if decoder.Decode(&e) != nil {
			return
		}
		p(e)
	}
}

func (p Progress) send(e Event) {
	if p != nil {
		p(e)
	}
}

func (p Progress) done() { p.send(Event{Status: AllReady}) }

type stage struct {
	progress Progress
	name     string
	began    time.Time
}

func (p Progress) stage(name string) *stage {
	p.send(Event{Stage: name, Status: StageStarted})
	return &stage{progress: p, name: name, began: time.Now()}
}

func (s *stage) ok() {
	s.progress.send(Event{Stage: s.name, Status: StageDone, Duration: time.Since(s.began)})
}

// skipped reports why the plane runs without the stage's feature.
func (s *stage) skipped(reason string) {
	s.progress.send(Event{Stage: s.name, Status: StageSkipped, Duration: time.Since(s.began), Error: reason})
}

// failed reports err and returns it.
func (s *stage) failed(err error) error {
	s.progress.send(Event{Stage: s.name, Status: StageFailed, Duration: time.Since(s.began), Error: err.Error()})
	return err
}
