package metal

import (
	"bytes"
	"net/http"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/request"
)

// Execution is the result of a program that ran in a machine.
type Execution struct {
	// Output is the beginning of what the program wrote to standard output and standard error.
	Output string `json:"output"`
	// Error is why the program failed, or empty.
	Error string `json:"error,omitempty"`
}

// maxOutput limits the output of a program.
const maxOutput = 1 << 20

// execute runs the program that the parameters argv name in a machine, as root and with the body as
// its standard input. Only administrators may: a project's token buys machines, and whoever runs
// them decides who logs in.
func execute(c *call) (*reply, error) {
	if !c.who.admin {
		return nil, request.Refuse(http.StatusForbidden, "Only the administrator's token runs programs in machines")
	}
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	shell, has := c.driver.(driver.Shell)
	if !has {
		return nil, request.Refuse(http.StatusNotImplemented, "The driver cannot run programs in machines")
	}
	argv := c.r.URL.Query()["argv"]
	if len(argv) == 0 {
		return nil, request.Refuse(http.StatusUnprocessableEntity, "argv is required")
	}
	out := &beginning{}
	result := Execution{}
	if err := shell.Enter(c.r.Context(), d.ID, argv, driver.Stdio{In: c.r.Body, Out: out, Err: out}); err != nil {
		result.Error = err.Error()
	}
	result.Output = out.buffer.String()
	return ok(result)
}

// beginning keeps the first maxOutput bytes that are written to it. One process writes both
// streams, through one pipe.
type beginning struct{ buffer bytes.Buffer }

func (b *beginning) Write(p []byte) (int, error) {
	b.buffer.Write(p[:min(len(p), maxOutput-b.buffer.Len())])
	return len(p), nil
}
