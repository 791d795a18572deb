package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// consoleKept bounds the stored console output.
const consoleKept = 64 << 10

// console is the console output of a simulated machine.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *console) printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text.Len() > consoleKept {
		c.text.Next(consoleKept / 2)
	}
	fmt.Fprintf(&c.text, "%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339)}, args...)...)
}

// Console returns the console output of a machine. Simulated machines write so little that
// following ends immediately.
func (d *Driver) Console(_ context.Context, id string, _ bool) (io.ReadCloser, error) {
	d.mu.Lock()
	m, found := d.machines[id]
	d.mu.Unlock()
	if !found {
		return nil, errors.New("machine not found")
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	return io.NopCloser(strings.NewReader(m.log.text.String())), nil
}
