// Package ports keeps the planes of tests apart. A plane chooses its ports once and expects them to
// be free at every start, so no other plane may choose them while it is down. Start with Hold.
package ports

import (
	"context"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Hold takes the ports that a plane asks for first, so that each plane has ports that no other one
// would choose. They are taken until the process ends. Several processes can hold the same ports:
// the end of one doesn't release them for the planes of another.
func Hold() []net.Listener {
	ports := []int{6443}
	for port := 5000; port < 5010; port++ {
		ports = append(ports, port)
	}
	var held []net.Listener
	for _, port := range ports {
		if l, err := hold(port); err == nil {
			held = append(held, l)
		} // A port that another program has taken serves as well.
	}
	return held
}

// hold listens on a port, beside others that hold it.
func hold(port int) (net.Listener, error) {
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		if err != nil {
			return err
		}
		return failed
	}}
	return shared.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
