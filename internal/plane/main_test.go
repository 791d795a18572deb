package plane

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for a component: what it does is in
// an environment variable, so that tests need no other program.
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

// superviseForever runs one child and prints its pid, for a test that kills
// the supervisor.
func superviseForever() {
	c := newChild(testComponent("serve"), newLogFile(os.DevNull), func() {})
	c.start()
	<-c.served
	fmt.Println(c.snapshot().PID)
	time.Sleep(time.Hour)
}
