package guest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// notifyDir holds the sockets on which services say that they are ready.
const notifyDir = "/run/drover/notify"

// readiness is how a service tells that it is ready. One without a socket is
// ready as soon as it runs.
type readiness struct {
	conn *net.UnixConn
	path string
}

// notifications prepares for a service to tell that it is ready, if its type is
// one that does.
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

// await waits until the service says that it is ready. It returns false when
// that does not happen, in time or before the service ends.
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
