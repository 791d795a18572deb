package plane

import "testing"

func TestFreePortsAreNotThoseOfOutgoingConnections(t *testing.T) {
	seen := map[int]bool{}
	for range 20 {
		port, err := freePort(loopbackAddress)
		if err != nil {
			t.Fatal(err)
		}
		if port < firstFreePort || port >= firstFreePort+freePorts {
			t.Errorf("port %d is not between %d and %d", port, firstFreePort, firstFreePort+freePorts)
		}
		if err := portFree(loopbackAddress, port); err != nil {
			t.Errorf("port %d is not free: %v", port, err)
		}
		seen[port] = true
	}
	if len(seen) < 2 {
		t.Error("every choice is the same")
	}
}
