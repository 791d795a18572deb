package plane

import (
	"fmt"
	"regexp"
	"strings"
)

// StartError means that a component failed before it served.
type StartError struct {
	Component string
	Reason    string
	Hint      string
	Log       string
	LogTail   []string
}

// startErrorLines is the number of log lines in an error message.
const startErrorLines = 5

func (e *StartError) Error() string {
	msg := fmt.Sprintf("%s did not start (%s)", e.Component, e.Reason)
	if e.Hint != "" {
		msg += ": " + e.Hint
	}
	msg += "; its log is " + e.Log
	if lines := meaningfulLines(e.LogTail, startErrorLines); len(lines) > 0 {
		msg += ", which ends with:\n  " + strings.Join(lines, "\n  ")
	}
	return msg
}

// frame matches a line of a stack trace: it shows where the program was, not what is wrong.
var frame = regexp.MustCompile(`^\s|^goroutine \d+ |^created by |^[\w./*()\[\]@-]+\(.*\)$|^$`)

// meaningfulLines returns the last lines that are useful to a person.
func meaningfulLines(lines []string, most int) []string {
	var out []string
	for _, line := range lines {
		if !frame.MatchString(line) {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-most):]
}
