package phase

import (
	"errors"
	"fmt"
)

// skip means that a phase has nothing to do.
type skip struct {
	reason string
	// all means that no later phase has anything to do either.
	all bool
}

func (s *skip) Error() string { return s.reason }

// Skip ends a phase that has nothing to do, with the reason.
func Skip(format string, args ...any) error { return &skip{reason: fmt.Sprintf(format, args...)} }

// Finish ends a run successfully because nothing is left to do, with the reason.
func Finish(format string, args ...any) error {
	return &skip{reason: fmt.Sprintf(format, args...), all: true}
}

// asSkip returns the skip that err is, if it is one.
func asSkip(err error) (*skip, bool) {
	var s *skip
	ok := errors.As(err, &s)
	return s, ok
}

// FailedError says which phase failed. Running the command again resumes at that phase.
type FailedError struct {
	Phase string
	// Again is the command line that resumes.
	Again string
	// Begun means that an earlier phase changed something.
	Begun bool
	Err   error
}

func (e *FailedError) Error() string {
	msg := fmt.Sprintf("phase %s failed: %v", e.Phase, e.Err)
	switch {
	case !e.Begun:
		msg += "\n\nNothing was changed."
	case e.Again != "":
		msg += "\n\nProgress was saved. To resume once the cause is fixed, run:\n\n  " + e.Again
	}
	return msg
}

func (e *FailedError) Unwrap() error { return e.Err }

// InterruptedError means that the run was canceled, for example by Ctrl-C.
type InterruptedError struct {
	Phase string
	Again string
	Begun bool
	Err   error
}

func (e *InterruptedError) Error() string {
	if !e.Begun {
		return fmt.Sprintf("interrupted in phase %s; nothing was changed", e.Phase)
	}
	return fmt.Sprintf("interrupted in phase %s\n\nProgress was saved. To resume, run:\n\n  %s", e.Phase, e.Again)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// BusyError means that another process works on the same cluster in the same directory.
type BusyError struct{ Cluster, Lock string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another drover process is working on cluster %q and holds %q: wait until it ends", e.Cluster, e.Lock)
}

// DamagedError means that a checkpoint can't be read.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("checkpoint %q of an earlier run is damaged (%v); nothing was changed\nCheck what that run created, then remove the file to start over", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// OtherCommandError means that another command on the cluster is unfinished.
type OtherCommandError struct{ Cluster, Unfinished, Phase, Path string }

func (e *OtherCommandError) Error() string {
	return fmt.Sprintf("an earlier `drover %s` of cluster %q is unfinished: it was in phase %s according to %q\nRun it again first", e.Unfinished, e.Cluster, e.Phase, e.Path)
}

// ChangedError means that the spec changed after a phase that fixes it.
type ChangedError struct{ Cluster, Phase, Path string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the spec of cluster %q changed after phase %s was done, according to %q\nFinish with the previous spec, then upgrade the cluster to the new one",
		e.Cluster, e.Phase, e.Path)
}
