package workflow

import (
	"errors"
	"fmt"
)

// skip says that a phase has nothing to do.
type skip struct {
	reason string
	// all means that later ones have nothing to do either.
	all bool
}

func (s *skip) Error() string { return s.reason }

// Skip ends a phase that has nothing to do, and says why.
func Skip(format string, args ...any) error { return &skip{reason: fmt.Sprintf(format, args...)} }

// Finish ends a workflow well because nothing is left to do, and says why.
func Finish(format string, args ...any) error {
	return &skip{reason: fmt.Sprintf(format, args...), all: true}
}

// PhaseError says which phase failed. Running the command again goes on with it.
type PhaseError struct {
	Phase string
	// Again is what to type.
	Again string
	// Begun means that something was done before.
	Begun bool
	Err   error
}

func (e *PhaseError) Error() string {
	msg := fmt.Sprintf("phase %s failed: %v", e.Phase, e.Err)
	switch {
	case !e.Begun:
		msg += "\n\nNothing was changed."
	case e.Again != "":
		msg += "\n\nWhat was done is recorded. To go on with this phase once the cause is gone:\n\n  " + e.Again
	}
	return msg
}

func (e *PhaseError) Unwrap() error { return e.Err }

// InterruptedError says that the run was ended from outside, by Ctrl-C for one.
type InterruptedError struct {
	Phase string
	Again string
	Begun bool
	Err   error
}

func (e *InterruptedError) Error() string {
	if !e.Begun {
		return fmt.Sprintf("interrupted in phase %s. Nothing was changed", e.Phase)
	}
	return fmt.Sprintf("interrupted in phase %s. What was done is recorded. To go on:\n\n  %s", e.Phase, e.Again)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// BusyError means that another process works on the same cluster from the same directory.
type BusyError struct{ Cluster, Lock string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another drover works on cluster %q right now (it holds %q): wait for it to end", e.Cluster, e.Lock)
}

// DamagedError means that a record can't be read.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the record of an earlier run, %q, is damaged (%v): nothing was done. Look at what that run made, and remove the file to begin anew", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// OtherCommandError means that something else was begun with the cluster and is not finished.
type OtherCommandError struct{ Cluster, Unfinished, Phase, Path string }

func (e *OtherCommandError) Error() string {
	return fmt.Sprintf("an earlier `drover %s` of cluster %q is not finished (it was in phase %s, as %q says): run that again first", e.Unfinished, e.Cluster, e.Phase, e.Path)
}

// ChangedError means that the spec was changed when it was too late for that.
type ChangedError struct{ Cluster, Phase, Path string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the spec of cluster %q has changed since phase %s was done (as %q says): finish with the spec as it was, and then upgrade the cluster to the new one",
		e.Cluster, e.Phase, e.Path)
}

// asSkip returns the skip that err is, if it is one.
func asSkip(err error) (*skip, bool) {
	var s *skip
	ok := errors.As(err, &s)
	return s, ok
}
