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

// TestMain lets the test binary stand in for a component: what it does is in an environment
// variable, so that tests need no other program.
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

// superviseForever runs one child and prints its pid, for a test that kills the supervisor. A home,
// if there is one, is taken as a supervisor takes it.
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

// takeHome is never given back: it ignores who asks it to end.
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

// heldLock is kept from being collected, which would close it.
var heldLock *os.File
