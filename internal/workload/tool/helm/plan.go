package helm

import (
	"context"
	"errors"

	"github.com/drover-dev/drover/internal/workload/tool"
)

// situation is what the records say of a release.
type situation struct {
	history history
	// newest is nil if there is none, or if it can't be read.
	newest *record
	// same says that the newest was made from what is wanted.
	same bool
	// base is the revision that is on the cluster as a whole, or nil.
	base *record
	// left are those after base, which may have left objects behind.
	left []*record
}

// last is the revision whose values are reused.
func (s *situation) last() *record {
	if s.base != nil {
		return s.base
	}
	if s.newest != nil && s.newest.status() == tool.Uninstalled {
		return nil
	}
	return s.newest
}

// records are all whose objects may be on the cluster.
func (s *situation) records() []*record {
	all := s.left
	if s.base != nil {
		all = append([]*record{s.base}, s.left...)
	}
	return all
}

// manyLeft bounds how many failed revisions are read for what they left behind.
const manyLeft = 5

func (o *operation) look(ctx context.Context, h history) (*situation, error) {
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
	if err := o.lookBack(ctx, s); err != nil {
		return nil, err
	}
	if s.newest != nil && s.newest.status() == tool.Uninstalling { // some of it is gone
		s.left, s.base = s.records(), nil
	}
	return s, nil
}

// lookBack reads the revision that was whole, and those after it.
func (o *operation) lookBack(ctx context.Context, s *situation) error {
	whole, found := s.history.whole()
	for _, e := range s.history[1:] {
		isWhole := found && e.revision == whole.revision
		if e.status == tool.Uninstalled || len(s.left) >= manyLeft && !isWhole {
			continue
		}
		if found && e.revision < whole.revision {
			return nil
		}
		rec, err := o.read(ctx, e)
		if err != nil {
			return err
		}
		if isWhole {
			s.base = rec
			return nil
		}
		if rec != nil {
			s.left = append(s.left, rec)
		}
	}
	return nil
}

// read returns nil for a record that can't be read.
func (o *operation) read(ctx context.Context, e entry) (*record, error) {
	rec, err := o.records.get(ctx, e.revision)
	if errors.Is(err, errBroken) {
		return nil, nil // there is nothing to be known of it
	}
	return rec, err
}

// whole is the revision before the newest that was on the cluster as a whole and was not uninstalled since: the deployed one, or that which
// would be if its successor had not been cut short.
func (h history) whole() (entry, bool) {
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
	// adopt leaves all as it is.
	adopt bool
	// resume goes on with the newest revision instead of making another.
	resume   bool
	revision int
	// install says that no revision is on the cluster as a whole.
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
