package ui

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes, as `drover help exit-codes` explains them.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitNotRunning = 3
)

// CodeError is an error with an exit code.
type CodeError struct {
	Code int
	Err  error
}

func (e *CodeError) Error() string { return e.Err.Error() }
func (e *CodeError) Unwrap() error { return e.Err }

// Usage marks an error as a usage error.
func Usage(err error) error { return &CodeError{Code: ExitUsage, Err: err} }

// Usagef returns a usage error with a message.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Silent returns an error with an exit code and without a message, for commands that have reported
// already.
func Silent(code int) error { return &CodeError{Code: code, Err: errSilent} }

var errSilent = errors.New("")

// Report prints err and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	if !errors.Is(err, errSilent) {
		fmt.Fprintf(w, "drover: %v\n", err)
	}
	var code *CodeError
	if errors.As(err, &code) {
		return code.Code
	}
	return ExitFailed
}
