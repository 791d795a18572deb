package helm

import (
	"context"
	"errors"

	"github.com/drover-dev/drover/internal/workload/tool"
)

// situation is what the records of a release say.
type situation struct {
	history history
	// newest is nil if there is none or if it is unreadable.
	newest *record
	// same reports that newest was made from what is wanted.
	same bool
	// base is the complete revision on the cluster, or nil.
	base *record
	// left are the revisions after base, which may have left objects behind.
	left []*record
}

// last returns the revision whose values are reused.
func (s *situation) last() *record {
	if s.base != nil {
		return s.base
	}
	if s.newest != nil && s.newest.status() == tool.Uninstalled {
		return nil
	}
	return s.newest
}

// records returns all revisions whose objects may exist.
func (s *situation) records() []*record {
	all := s.left
	if s.base != nil {
		all = append([]*record{s.base}, s.left...)
	}
	return all
}

// maxLeft limits how many failed revisions are read for objects that they left behind.
const maxLeft = 5

func (o *operation) observe(ctx context.Context, h history) (*situation, error) {
	s := &situation{history: h}
	if len(h) == 0 {
		return s, nil
	}
	var err error
	if s.newest, err = o.read(ctx, h[0]); err != nil {
		return nil, err
	}
	if s.newest != nil {
		switch s.newest.status() {
		case tool.Deployed, tool.Superseded:
			s.base = s.newest
			return s, nil
		case tool.Uninstalled:
			return s, nil
		}
		s.left = []*record{s.newest}
	}
	if err := o.observeEarlier(ctx, s); err != nil {
		return nil, err
	}
	if s.newest != nil && s.newest.status() == tool.Uninstalling { // partially deleted
		s.left, s.base = s.records(), nil
	}
	return s, nil
}

// observeEarlier reads the last complete revision and those after it.
func (o *operation) observeEarlier(ctx context.Context, s *situation) error {
	complete, found := s.history.lastComplete()
	for _, e := range s.history[1:] {
		isComplete := found && e.revision == complete.revision
		if e.status == tool.Uninstalled || len(s.left) >= maxLeft && !isComplete {
			continue
		}
		if found && e.revision < complete.revision {
			return nil
		}
		rec, err := o.read(ctx, e)
		if err != nil {
			return err
		}
		if isComplete {
			s.base = rec
			return nil
		}
		if rec != nil {
			s.left = append(s.left, rec)
		}
	}
	return nil
}

// read returns nil for an unreadable record.
func (o *operation) read(ctx context.Context, e entry) (*record, error) {
	rec, err := o.records.get(ctx, e.revision)
	if errors.Is(err, errBroken) {
		return nil, nil // there is nothing to be known of it
	}
	return rec, err
}

// lastComplete returns the last revision before the newest that was complete and was not
// uninstalled since: the deployed one, or the one that would be if its successor had not been
// interrupted.
func (h history) lastComplete() (entry, bool) {
	var superseded *entry
	for i, e := range h[1:] {
		switch e.status {
		case tool.Deployed:
			return e, true
		case tool.Superseded:
			if superseded == nil {
				superseded = &h[i+1]
			}
		case tool.Uninstalled:
			return first(superseded)
		}
	}
	return first(superseded)
}

func first(e *entry) (entry, bool) {
	if e == nil {
		return entry{}, false
	}
	return *e, true
}

// step is what Apply does next.
type step struct {
	// adopt changes nothing.
	adopt bool
	// resume continues the newest revision instead of creating another.
	resume   bool
	revision int
	// install reports that no complete revision exists on the cluster.
	install bool
}

// decide chooses the step.
//
//	newest       same and ours     otherwise
//	none                           install 1
//	deployed     adopt (anybody's) upgrade to the next
//	pending-…    resume            mark it failed, then the next
//	failed       resume            the next
//	uninstalling                   the next
//	uninstalled                    install as the next
//	superseded                     upgrade to the next
//	unreadable                     the next
func decide(s *situation) step {
	next := step{revision: 1, install: s.base == nil}
	if len(s.history) == 0 {
		return next
	}
	next.revision = s.history[0].revision + 1
	if s.newest == nil || !s.same {
		return next
	}
	switch s.newest.status() {
	case tool.Deployed:
		return step{adopt: true, revision: s.newest.Version}
	case tool.Failed, tool.PendingInstall, tool.PendingUpgrade, tool.PendingRollback:
		if s.newest.chart != "" {
			next.resume, next.revision = true, s.newest.Version
		}
	}
	return next
}
