package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// console is the output of the first process: for people on the console, for the driver in the file
// of events.
type console struct {
	mu     sync.Mutex
	begin  time.Time
	events *os.File
}

func (c *console) printf(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "[%8.3f] drover: %s\n", time.Since(c.begin).Seconds(), fmt.Sprintf(format, args...))
}

// report records an event. The phase may be empty.
func (c *console) report(e Event) {
	c.printf("%s: %s", e.Type, e.Message)
	e.Time = time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.events.Write(append(line, '\n')); err != nil {
		c.printf("recording an event: %v", err)
	}
}
