package remote

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// server is a real OpenSSH server, as this user.
type server struct {
	driver.SSH

	dir string
	key ed25519.PrivateKey
}

func newServer(t *testing.T) *server {
	t.Helper()
	return startServer(t, "PasswordAuthentication no", nil)
}

// startServer starts a server with a setting. The wrapper, if there is one, is a command that
// executes its arguments.
func startServer(t *testing.T, setting string, wrapper []string) *server {
	t.Helper()
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("needs openssh-server")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Skip("sshd needs /run/sshd:", err)
	}
	s := &server{dir: t.TempDir()}
	s.key = writeKey(t, filepath.Join(s.dir, "id"), "")
	writeKey(t, filepath.Join(s.dir, "host"), "")
	public, err := ssh.NewPublicKey(s.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.dir, "authorized_keys"), string(ssh.MarshalAuthorizedKey(public)))
	port := freePort(t)
	config := filepath.Join(s.dir, "sshd_config")
	write(t, config, fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %s/host\nAuthorizedKeysFile %[2]s/authorized_keys\nStrictModes no\nUsePAM no\n%s\nPermitRootLogin yes\nPidFile none\n", port, s.dir, setting))
	argv := append(slices.Clone(wrapper), sshd, "-D", "-e", "-f", config)
	cmd := exec.Command(argv[0], argv[1:]...)
	// Not a pipe: children of sshd outlive it.
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s.SSH = driver.SSH{Host: "127.0.0.1", Port: port, User: me.Username, KeyFile: filepath.Join(s.dir, "id")}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address(s.SSH))
		if err == nil {
			conn.Close()
			return s
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// sudo stands for the program of that name, of which few hosts have a configuration for tests. Only
// one user may use it.
const sudo = `#!/bin/sh
if [ "$(id -un)" != shepherd ]; then echo "sudo: a password is required" >&2; exit 1; fi
if [ "$1 $2" != "-n --" ]; then echo "usage: sudo -n -- COMMAND" >&2; exit 2; fi
shift 2
AS_ROOT=yes exec "$@"
`

// newAccountServer is a real OpenSSH server that knows two more users, shepherd and stranger, who
// have a password. It sees other accounts than this host, in a mount namespace of its own.
func newAccountServer(t *testing.T, password string) *server {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a mount namespace needs root")
	}
	hash := exec.Command("openssl", "passwd", "-6", "-stdin")
	hash.Stdin = strings.NewReader(password)
	secret, err := hash.Output()
	if err != nil {
		t.Skip("needs openssl:", err)
	}
	accounts, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	dir, shadow := t.TempDir(), ""
	for i, name := range []string{"shepherd", "stranger"} {
		accounts = fmt.Appendf(accounts, "%s:x:%d:%[2]d::/:/bin/sh\n", name, 12345+i)
		shadow += fmt.Sprintf("%s:%s:19000:0:99999:7:::\n", name, strings.TrimSpace(string(secret)))
	}
	for name, content := range map[string]string{"passwd": string(accounts), "shadow": shadow, "bin/sudo": sudo} {
		if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const script = `mount --bind "$0/passwd" /etc/passwd; mount --bind "$0/shadow" /etc/shadow; mount --bind "$0/bin" /usr/local/bin; exec "$@"`
	s := startServer(t, "PasswordAuthentication yes", []string{"unshare", "--mount", "sh", "-ec", script, dir})
	s.User, s.KeyFile = "shepherd", ""
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeKey writes a private key in the format of OpenSSH.
func writeKey(t *testing.T, path, passphrase string) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(block)))
	return key
}

func dial(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestHostKeysArePinned(t *testing.T) {
	s := newServer(t)
	var host, key string
	dial(t, Options{SSH: s.SSH, Pin: func(h, k string) error { host, key = h, k; return nil }})
	if host != "127.0.0.1" || !strings.HasPrefix(key, "ssh-ed25519 ") {
		t.Fatalf("pinned %q for %q", key, host)
	}
	s.HostKey = key
	dial(t, Options{SSH: s.SSH, Pin: func(string, string) error { t.Error("pinned again"); return nil }})

	other, err := ssh.NewPublicKey(writeKey(t, filepath.Join(s.dir, "other"), "").Public())
	if err != nil {
		t.Fatal(err)
	}
	s.HostKey = string(ssh.MarshalAuthorizedKey(other))
	_, err = Dial(t.Context(), Options{SSH: s.SSH})
	var problem *Error
	if !errors.As(err, &problem) || !strings.Contains(problem.Problem, "may be another server") || !strings.Contains(problem.Remedy, "--host-key") {
		t.Errorf("a changed host key: %v", err)
	}
	// Without a record of the key, nothing is sent.
	s.HostKey = ""
	if _, err := Dial(t.Context(), Options{SSH: s.SSH, Pin: func(string, string) error { return errors.New("disk full") }}); err == nil || !strings.Contains(err.Error(), "could not be pinned") {
		t.Errorf("a key that can't be pinned: %v", err)
	}
}

func TestCommandsAndFiles(t *testing.T) {
	s := newServer(t)
	c := dial(t, Options{SSH: s.SSH})
	c.root = true // The user of the test, who may lack sudo.
	out, err := c.Output(t.Context(), "echo one; cat /dev/null")
	if err != nil || out != "one\n" {
		t.Errorf("got %q and %v", out, err)
	}
	var exit *ExitError
	if err := c.Root(t.Context(), "echo broken >&2; exit 7", Streams{}); !errors.As(err, &exit) || exit.Code != 7 || exit.Stderr != "broken" {
		t.Errorf("a failed command: %v", err)
	}
	from, to := filepath.Join(s.dir, "program"), filepath.Join(s.dir, "it's here", "program")
	for _, content := range []string{"first", strings.Repeat("second", 1<<18)} {
		write(t, from, content)
		for _, want := range []bool{true, false} {
			if sent, err := c.Send(t.Context(), from, to); err != nil || sent != want {
				t.Fatalf("sent: %v, %v; want %v", sent, err, want)
			}
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != content {
			t.Errorf("the file has %d bytes: %v", len(got), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(to), ".part-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	in, end := io.Pipe() // The command ends with its input, so that nothing outlives the test.
	context.AfterFunc(ctx, func() { _ = end.Close() })
	if err := c.Root(ctx, "cat", Streams{In: in}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command without an end: %v", err)
	}
}

func TestPasswordsAndSudo(t *testing.T) {
	s := newAccountServer(t, "open sesame")
	secrets := driver.Secrets{Password: "open sesame"}
	c := dial(t, Options{SSH: s.SSH, Secrets: secrets})
	for name, run := range map[string]struct {
		do   func(context.Context, string, Streams) error
		want string
	}{
		"as root, with sudo":       {c.Root, "shepherd is root: yes, it's so\n"},
		"as the user, who logs in": {c.User, "shepherd is root: , it's so\n"},
	} {
		var out bytes.Buffer
		if err := run.do(t.Context(), `echo "$(id -un) is root: $AS_ROOT, it's so"`, Streams{Out: &out}); err != nil || out.String() != run.want {
			t.Errorf("%s: got %q, %v; want %q", name, out.String(), err, run.want)
		}
	}
	var exit *ExitError
	if err := c.Root(t.Context(), "echo broken >&2; exit 7", Streams{}); !errors.As(err, &exit) || exit.Code != 7 || exit.Stderr != "broken" {
		t.Errorf("a command that fails below sudo: %v", err)
	}
	stranger := s.SSH
	stranger.User = "stranger"
	err := dial(t, Options{SSH: stranger, Secrets: secrets}).Root(t.Context(), "true", Streams{})
	if !errors.As(err, &exit) || !strings.Contains(exit.Stderr, "a password is required") {
		t.Errorf("a user who may not use sudo: %v", err)
	}
	_, err = Dial(t.Context(), Options{SSH: s.SSH, Secrets: driver.Secrets{Password: "please"}})
	var problem *Error
	if !errors.As(err, &problem) || !strings.Contains(problem.Problem, "refuses to log in shepherd") {
		t.Errorf("a wrong password: %v", err)
	}
	behind := newServer(t)
	behind.Bastion = &s.SSH
	dial(t, Options{SSH: behind.SSH, Secrets: driver.Secrets{BastionPassword: "open sesame"}})
	if _, err := Dial(t.Context(), Options{SSH: behind.SSH, Secrets: secrets}); err == nil || !strings.Contains(err.Error(), "bastion") {
		t.Errorf("a bastion without its password: %v", err)
	}
}

func TestBastion(t *testing.T) {
	bastion, s := newServer(t), newServer(t)
	s.Bastion = &bastion.SSH
	pinned := map[string]bool{}
	c := dial(t, Options{SSH: s.SSH, Pin: func(_, key string) error { pinned[key] = true; return nil }})
	c.root = true
	if out, err := c.Output(t.Context(), "echo $SSH_CONNECTION"); err != nil || !strings.Contains(out, "127.0.0.1") {
		t.Errorf("got %q and %v", out, err)
	}
	if len(pinned) != 2 {
		t.Errorf("pinned %d keys, want those of both hosts", len(pinned))
	}
}

func TestKeys(t *testing.T) {
	s := newServer(t)
	locked := filepath.Join(s.dir, "locked")
	key, err := ssh.NewPublicKey(writeKey(t, locked, "open sesame").Public())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, "authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, string(ssh.MarshalAuthorizedKey(key)))
	file.Close()
	stranger := filepath.Join(s.dir, "stranger")
	writeKey(t, stranger, "")
	write(t, filepath.Join(s.dir, "text"), "not a key")
	socket := serveAgent(t, s.key)
	for name, tt := range map[string]struct {
		change  func(*driver.SSH)
		secrets driver.Secrets
		want    string
	}{
		"a key with a passphrase":  {func(x *driver.SSH) { x.KeyFile = locked }, driver.Secrets{KeyPassphrase: "open sesame"}, ""},
		"without the passphrase":   {func(x *driver.SSH) { x.KeyFile = locked }, driver.Secrets{}, "has a passphrase"},
		"another passphrase":       {func(x *driver.SSH) { x.KeyFile = locked }, driver.Secrets{KeyPassphrase: "please"}, "is not a private key that can be used"},
		"an unknown key":           {func(x *driver.SSH) { x.KeyFile = stranger }, driver.Secrets{}, "refuses to log in"},
		"a missing key":            {func(x *driver.SSH) { x.KeyFile = "/nonexistent" }, driver.Secrets{}, "can't be read"},
		"a file that is no key":    {func(x *driver.SSH) { x.KeyFile = filepath.Join(s.dir, "text") }, driver.Secrets{}, "is not a private key"},
		"no key at all":            {func(x *driver.SSH) { x.KeyFile = "" }, driver.Secrets{}, "there is no key and no password"},
		"an agent":                 {func(x *driver.SSH) { x.KeyFile, x.AgentSocket = "", socket }, driver.Secrets{}, ""},
		"an agent that has ended":  {func(x *driver.SSH) { x.KeyFile, x.AgentSocket = "", "/nonexistent" }, driver.Secrets{}, "the SSH agent does not answer"},
		"a port without a server":  {func(x *driver.SSH) { x.Port = 1 }, driver.Secrets{}, "no SSH server answers"},
		"a pinned key of nonsense": {func(x *driver.SSH) { x.HostKey = "nonsense" }, driver.Secrets{}, "the pinned host key"},
	} {
		t.Run(name, func(t *testing.T) {
			access := s.SSH
			tt.change(&access)
			c, err := Dial(t.Context(), Options{SSH: access, Secrets: tt.secrets})
			if err == nil {
				_ = c.Close()
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			var problem *Error
			if err != nil && (!errors.As(err, &problem) || problem.Remedy == "") {
				t.Errorf("no remedy for %v", err)
			}
			if err != nil && strings.Contains(problem.Remedy, "passphrase") && !strings.Contains(problem.Remedy, "--passphrase-stdin") {
				t.Errorf("the remedy names no flag: %q", problem.Remedy)
			}
		})
	}
}

// serveAgent serves a key as an SSH agent.
func serveAgent(t *testing.T, key ed25519.PrivateKey) (socket string) {
	t.Helper()
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(ring, conn)
		}
	}()
	return socket
}

// TestALostConnectionIsNoFailedCommand cuts the connection below a command.
func TestALostConnectionIsNoFailedCommand(t *testing.T) {
	s := newServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	cut, behind := make(chan struct{}), address(s.SSH)
	go func() {
		front, err := l.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", behind)
		if err != nil {
			return
		}
		go io.Copy(front, back)
		go io.Copy(back, front)
		<-cut
		front.Close()
		back.Close()
	}()
	s.Port = l.Addr().(*net.TCPAddr).Port
	c := dial(t, Options{SSH: s.SSH})
	c.root = true
	reader, writer := io.Pipe()
	go func() {
		_, _ = reader.Read(make([]byte, 1))
		close(cut)
		_, _ = io.Copy(io.Discard, reader)
	}()
	in, end := io.Pipe() // The command ends with its input, so that nothing outlives the test.
	go func() {
		<-cut
		_ = end.Close()
	}()
	err = c.Root(t.Context(), "echo started; cat", Streams{In: in, Out: writer})
	_ = writer.Close()
	var exit *ExitError
	if err == nil || errors.As(err, &exit) || !strings.Contains(err.Error(), "connection was lost") {
		t.Errorf("got %v", err)
	}
}

// TestAServerThatNeverAnswersIsGivenUp connects to a port that accepts and says nothing.
func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	access := driver.SSH{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "root"}
	if _, err := Dial(ctx, Options{SSH: access, Secrets: driver.Secrets{Password: "x"}}); err == nil {
		t.Error("connected to a server that never answered")
	}
}
