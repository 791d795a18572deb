package plane

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/process"
)

// TestMain lets the test binary act as a component: an environment variable selects its behavior,
// so that tests need no other program.
func TestMain(m *testing.M) {
	switch os.Getenv("PLANE_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "serve":
		<-terminated()
	case "fail":
		fmt.Println("cannot go on: no such luck")
		os.Exit(7)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("try me")
		time.Sleep(time.Hour)
	case "supervise":
		superviseForever()
	}
}

func terminated() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}

// superviseForever runs one child and prints its PID, for a test that kills the supervisor. It
// locks the home, if there is one, as a supervisor does.
func superviseForever() {
	c := newChild(testComponent("serve"), newLogFile(os.DevNull), func() {})
	c.start()
	<-c.served
	if dir := os.Getenv("PLANE_TEST_HOME"); dir != "" {
		takeHome(Home{Dir: dir}, c.snapshot().PID)
	}
	fmt.Println(c.snapshot().PID)
	time.Sleep(time.Hour)
}

// takeHome locks a home and ignores requests to exit.
func takeHome(h Home, child int) {
	signal.Ignore(syscall.SIGTERM)
	lock, err := h.lock()
	if err == nil {
		err = writeJSON(h.stateFile(), State{Supervisor: process.Identify(os.Getpid()), Children: []process.Process{process.Identify(child)}})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	heldLock = lock
}

// heldLock is kept from being garbage collected, and thereby closed.
var heldLock *os.File
