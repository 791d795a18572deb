package plane

import (
	"fmt"
	"strings"
)

// StartError means that a component never came to serve.
type StartError struct {
	Component string
	Reason    string
	Log       string
	LogTail   []string
}

// startErrorLines is how much of the log fits under an error message.
const startErrorLines = 5

func (e *StartError) Error() string {
	msg := fmt.Sprintf("%s did not start (%s); its log is %s", e.Component, e.Reason, e.Log)
	if len(e.LogTail) > 0 {
		last := e.LogTail[max(0, len(e.LogTail)-startErrorLines):]
		msg += ", which ends with:\n  " + strings.Join(last, "\n  ")
	}
	return msg
}
