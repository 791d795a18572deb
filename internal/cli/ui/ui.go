// Package ui has what commands print with: streams that know whether they are a terminal, output
// formats, progress, and errors with exit codes. It knows no command. Start with IO.
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

// CompletionTimeout limits the requests of shell completion.
const CompletionTimeout = 2 * time.Second

// IO holds the streams of a command. Results go to Out, everything else to Err.
type IO struct {
	In  stdio.Reader
	Out stdio.Writer
	Err stdio.Writer
	// Interactive means that Err is a terminal on which lines can be updated.
	Interactive bool
	// CanAsk means that In and Err are a terminal.
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

// Confirm asks a question, and reports whether the answer was "yes".
func (io *IO) Confirm(question string) (bool, error) {
	fmt.Fprintf(io.Err, "%s Type yes to continue: ", question)
	answer, err := bufio.NewReader(io.In).ReadString('\n')
	if err != nil && !errors.Is(err, stdio.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(answer) == "yes", nil
}
