package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// keepAlive is how often the kernel checks that an SSH server is still there.
const keepAlive = 15 * time.Second

// sshWire speaks Git over SSH. go-git has a client as well, but that one reads configuration files
// of the user, ignores the context while it connects and doesn't limit what a server sends.
type sshWire struct {
	at     address
	limits bounded.Limits
	signer ssh.Signer
	hosts  *knownhosts.HostKeyDB
}

func newSSHWire(at address, c Credentials, l bounded.Limits) (*sshWire, error) {
	signer, err := c.signer()
	if err != nil {
		return nil, err
	}
	hosts, err := readKnownHosts(c.KnownHosts)
	if err != nil {
		return nil, err
	}
	return &sshWire{at: at, limits: l, signer: signer, hosts: hosts}, nil
}

func (w *sshWire) upload(ctx context.Context) (transport.UploadPackSession, error) {
	return w.open(ctx, transport.UploadPackServiceName)
}

func (w *sshWire) receive(ctx context.Context) (transport.ReceivePackSession, error) {
	return w.open(ctx, transport.ReceivePackServiceName)
}

// open starts a service of the server. The end of the context closes the connection, which ends
// every read and write of the session.
func (w *sshWire) open(ctx context.Context, service string) (*sshSession, error) {
	dialer := net.Dialer{KeepAlive: keepAlive}
	raw, err := dialer.DialContext(ctx, "tcp", w.at.dial())
	if err != nil {
		return nil, err
	}
	conn := bounded.Conn(raw, w.limits)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	client, err := w.handshake(conn)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, err
	}
	s := &sshSession{client: client, stop: stop, stderr: head{max: maxReason}, receives: service == transport.ReceivePackServiceName}
	if err := s.start(service + " " + quote(w.at.path)); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// handshake authenticates both sides. The SSH library has no type for a denied login: it is what
// fails after the host key was accepted, unless the connection does.
func (w *sshWire) handshake(conn net.Conn) (*ssh.Client, error) {
	accepted := false
	verify := w.hosts.HostKeyCallback()
	config := &ssh.ClientConfig{
		User: w.at.login(),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(w.signer)},
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			err := verify(host, remote, key)
			accepted = err == nil
			return err
		},
		HostKeyAlgorithms: w.hosts.HostKeyAlgorithms(w.at.dial()),
	}
	c, channels, requests, err := ssh.NewClientConn(conn, w.at.dial(), config)
	if err == nil {
		return ssh.NewClient(c, channels, requests), nil
	}
	if _, network := errors.AsType[net.Error](err); accepted && !network && !isAny(err, io.EOF, net.ErrClosed) {
		return nil, fmt.Errorf("%w: %w", errDenied, err)
	}
	return nil, err
}

// quote protects a path from the shell of the server.
func quote(path string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(path) + "'"
}
