package ports

import (
	"net"
	"testing"
)

func TestAHeldPortIsTakenForOthers(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	first, err := hold(address.Port)
	if err != nil {
		t.Fatal(err)
	}
	second, err := hold(address.Port)
	if err != nil {
		t.Fatalf("a second holder failed: %v", err)
	}
	defer second.Close()
	_ = first.Close()
	if l, err := net.Listen("tcp", address.String()); err == nil {
		_ = l.Close()
		t.Error("the port was free after the first of two holders released it")
	}
}
