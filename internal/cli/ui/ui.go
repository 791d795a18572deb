// Package ui is how commands speak to people and to scripts: streams that
// know whether a person is watching, output formats, progress, and errors that
// carry an exit code and a hint. It knows no command.
package ui

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IO are the streams of a command. Results go to Out, talk goes to Err, so
// that a pipe gets results only.
type IO struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Interactive means that a person watches Err and can be shown lines that
	// change.
	Interactive bool
}

// System returns the streams of the process.
func System() *IO {
	return &IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Interactive: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"}
}
