package gittest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshd must be called by its absolute path, because it executes itself again.
const sshd = "/usr/sbin/sshd"

// privilegeDir must exist for sshd when it runs as root. Its service creates it, too.
const privilegeDir = "/run/sshd"

// SSH is an OpenSSH server whose users can run git-shell only.
type SSH struct {
	// KnownHosts has the key of the server.
	KnownHosts []byte

	t        testing.TB
	root     string
	listener net.Listener
	sessions sync.WaitGroup
}

// NewSSH starts a server that ends with the test and accepts the given public keys, in the format
// of authorized_keys.
func NewSSH(t testing.TB, authorized ...[]byte) *SSH {
	t.Helper()
	s := &SSH{t: t, root: t.TempDir()}
	s.configure(authorized)
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(s.file("host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(public)
	if err != nil {
		t.Fatal(err)
	}
	s.KnownHosts = []byte(knownhosts.Line([]string{knownhosts.Normalize(s.listener.Addr().String())}, key) + "\n")
	ctx, cancel := context.WithCancel(context.Background())
	s.sessions.Go(func() { s.serve(ctx) })
	t.Cleanup(func() { _ = s.listener.Close(); cancel(); s.sessions.Wait() })
	return s
}

func (s *SSH) file(name string) string { return filepath.Join(s.root, name) }

// configure writes the files of the server.
func (s *SSH) configure(authorized [][]byte) {
	s.t.Helper()
	if os.Geteuid() == 0 {
		if err := os.MkdirAll(privilegeDir, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	WriteKey(s.t, s.file("host"), "ed25519", "")
	for _, key := range authorized {
		s.Authorize(key)
	}
	settings := []string{
		"HostKey " + s.file("host"), "AuthorizedKeysFile " + s.file("authorized_keys"), "PidFile none",
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin yes", "PrintMotd no", "PrintLastLog no", "LogLevel ERROR",
	}
	if err := os.WriteFile(s.file("sshd_config"), []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Authorize accepts a public key from now on, in the format of authorized_keys.
func (s *SSH) Authorize(key []byte) {
	s.t.Helper()
	file, err := os.OpenFile(s.file("authorized_keys"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "restrict,command=\"git-shell -c \\\"$SSH_ORIGINAL_COMMAND\\\"\" %s\n", bytes.TrimSpace(key)); err != nil {
		s.t.Fatal(err)
	}
}

// serve starts an sshd for each connection, as inetd does: there is no port to race for, and every
// process is a child of the test.
func (s *SSH) serve(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.t.Errorf("accepting an SSH connection: %v", err)
			return
		}
		s.sessions.Go(func() { s.handle(ctx, conn.(*net.TCPConn)) })
	}
}

func (s *SSH) handle(ctx context.Context, conn *net.TCPConn) {
	file, err := conn.File()
	_ = conn.Close()
	if err != nil {
		s.t.Errorf("handing over an SSH connection: %v", err)
		return
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, sshd, "-i", "-e", "-f", s.file("sshd_config"))
	cmd.Stdin, cmd.Stdout, cmd.Env = file, file, environment(s.root)
	if err := cmd.Start(); err != nil {
		s.t.Errorf("starting sshd, which Debian has in openssh-server: %v", err)
		return
	}
	_ = cmd.Wait() // It fails for each denied login.
}

// Create returns a new, empty repository.
func (s *SSH) Create(name string) *Repository { return newRepository(s.t, s.root, name) }

// URL returns the URL of a repository.
func (s *SSH) URL(name string) string {
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("ssh://%s@%s%s", me.Username, s.listener.Addr(), s.file(name))
}

// Stop ends the server before the test does.
func (s *SSH) Stop() { _ = s.listener.Close() }

// WriteKey creates a key pair of a type such as ed25519, at path and path.pub.
func WriteKey(t testing.TB, path, kind, passphrase string) {
	t.Helper()
	args := []string{"-q", "-t", kind, "-N", passphrase, "-C", "", "-f", path}
	if kind == "rsa" {
		args = append(args, "-b", "2048") // Larger keys take seconds.
	}
	cmd := exec.Command("ssh-keygen", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

// NewKey returns a new private key of a type such as ed25519, and its public key.
func NewKey(t testing.TB, kind, passphrase string) (private, public []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	WriteKey(t, path, kind, passphrase)
	for _, f := range []struct {
		to   *[]byte
		path string
	}{{&private, path}, {&public, path + ".pub"}} {
		var err error
		if *f.to, err = os.ReadFile(f.path); err != nil {
			t.Fatal(err)
		}
	}
	return private, public
}
