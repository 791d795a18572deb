// Package ui is how commands speak to people and to scripts: streams that
// know whether a person is watching, output formats, progress, and errors that
// carry an exit code and a hint. It knows no command.
package ui

import (
	"bufio"
	"errors"
	"fmt"
	stdio "io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// CompletionTimeout keeps a shell responsive that completes names, when nobody
// answers.
const CompletionTimeout = 2 * time.Second

// IO are the streams of a command. Results go to Out, talk goes to Err, so
// that a pipe gets results only.
type IO struct {
	In  stdio.Reader
	Out stdio.Writer
	Err stdio.Writer
	// Interactive means that a person watches Err and can be shown lines that
	// change.
	Interactive bool
	// CanAsk means that a person can also answer on In.
	CanAsk bool
}

// System returns the streams of the process.
func System() *IO {
	watched := term.IsTerminal(int(os.Stderr.Fd()))
	return &IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Interactive: watched && os.Getenv("TERM") != "dumb",
		CanAsk:      watched && term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// Confirm asks a question whose answer must be "yes".
func (io *IO) Confirm(question string) (bool, error) {
	fmt.Fprintf(io.Err, "%s Type yes to go on: ", question)
	answer, err := bufio.NewReader(io.In).ReadString('\n')
	if err != nil && !errors.Is(err, stdio.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(answer) == "yes", nil
}
