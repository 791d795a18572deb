package guest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// notifyDir holds the sockets on which services report readiness.
const notifyDir = "/run/drover/notify"

// readiness receives a service's readiness notification. A service without a socket is ready as
// soon as it runs.
type readiness struct {
	conn *net.UnixConn
	path string
}

// notifications opens the readiness socket of a service, if its type uses one.
func (u *unit) notifications(env []string) (readiness, []string, error) {
	if u.kind != "notify" {
		return readiness{}, env, nil
	}
	path := filepath.Join(notifyDir, u.name)
	if err := os.MkdirAll(notifyDir, 0o755); err != nil {
		return readiness{}, nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return readiness{}, nil, err
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return readiness{}, nil, err
	}
	return readiness{conn: conn, path: path}, append(env, "NOTIFY_SOCKET="+path), nil
}

// await waits until the service reports readiness. It returns false on a timeout or if the service
// ends.
func (r readiness) await(timeout time.Duration) bool {
	if r.conn == nil {
		return true
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return false
	}
	message := make([]byte, 4096)
	for {
		n, err := r.conn.Read(message)
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(message[:n])) {
			if strings.TrimSpace(line) == "READY=1" {
				return true
			}
		}
	}
}

func (r readiness) close() {
	if r.conn != nil {
		r.conn.Close()
	}
}
