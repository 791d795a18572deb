package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/drover-dev/drover/internal/metal/driver"
)

const (
	// dialTimeout bounds a connection and its authentication, per hop.
	dialTimeout = 15 * time.Second
	// keepAlive is how often an open connection is probed; after keepAliveMax probes without an
	// answer it is closed.
	keepAlive    = 10 * time.Second
	keepAliveMax = 3
	defaultPort  = 22
)

// Error is why a server can't be reached, and what to do about it.
type Error struct {
	Problem, Remedy string
	Err             error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Problem + ": " + e.Err.Error()
	}
	return e.Problem
}

func (e *Error) Unwrap() error { return e.Err }

// Options are how to connect.
type Options struct {
	SSH     driver.SSH
	Secrets driver.Secrets
	// Pin records the key of a host that has none yet, before anything is sent to it.
	Pin func(host, key string) error
}

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	conn *ssh.Client
	// hops are closed with the connection, the nearest last.
	hops []*ssh.Client
	root bool
	stop context.CancelFunc
}

// Dial connects to a server, through its bastion if it has one.
func Dial(ctx context.Context, o Options) (*Client, error) {
	c := &Client{root: o.SSH.User == "root"}
	dial := (&net.Dialer{}).DialContext
	if b := o.SSH.Bastion; b != nil {
		hop, err := connect(ctx, *b, driver.Secrets{Password: o.Secrets.BastionPassword, KeyPassphrase: o.Secrets.KeyPassphrase}, o.Pin, dial)
		if err != nil {
			return nil, fmt.Errorf("bastion: %w", err)
		}
		c.hops = append(c.hops, hop)
		dial = hop.DialContext
	}
	conn, err := connect(ctx, o.SSH, o.Secrets, o.Pin, dial)
	if err != nil {
		_ = c.closeHops()
		return nil, err
	}
	c.conn = conn
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go c.keepAlive(alive)
	return c, nil
}

// Close ends the connection and everything that runs on it.
func (c *Client) Close() error {
	c.stop()
	return errors.Join(c.conn.Close(), c.closeHops())
}

func (c *Client) closeHops() error {
	var err error
	for _, h := range c.hops {
		err = errors.Join(err, h.Close())
	}
	return err
}

// keepAlive closes a connection whose server has gone without a word.
func (c *Client) keepAlive(ctx context.Context) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		answered := make(chan error, 1)
		go func() {
			_, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		select {
		case <-ctx.Done():
			return
		case err := <-answered:
			if err == nil {
				continue
			}
		case <-time.After(keepAliveMax * keepAlive):
		}
		_ = c.conn.Close()
		return
	}
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func address(s driver.SSH) string {
	port := s.Port
	if port == 0 {
		port = defaultPort
	}
	return net.JoinHostPort(s.Host, strconv.Itoa(port))
}

// connect makes one hop.
func connect(ctx context.Context, s driver.SSH, secrets driver.Secrets, pin func(host, key string) error, dial dialFunc) (*ssh.Client, error) {
	auth, closeAgent, err := methods(s, secrets)
	if err != nil {
		return nil, err
	}
	defer closeAgent()
	keys, err := newHostKeys(s, pin)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := dial(ctx, "tcp", address(s))
	if err != nil {
		return nil, &Error{fmt.Sprintf("no SSH server answers at %s", address(s)), "check that the server is on, and the address, the port and firewalls in between", err}
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, channels, requests, err := ssh.NewClientConn(raw, address(s), &ssh.ClientConfig{
		User: s.User, Auth: auth, HostKeyCallback: keys.check, HostKeyAlgorithms: keys.algorithms(), ClientVersion: "SSH-2.0-drover",
	})
	if !stop() && err == nil {
		_ = conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, explain(s, keys, err)
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// explain says what a failed handshake means.
func explain(s driver.SSH, keys *hostKeys, err error) error {
	switch {
	case keys.err != nil:
		return keys.err
	case strings.Contains(err.Error(), "unable to authenticate"): // The library has no type for it.
		return &Error{fmt.Sprintf("%s refuses to log in %s", address(s), s.User), "add the public key to the authorized_keys of that user, or name another key with --identity-file", err}
	default:
		return &Error{fmt.Sprintf("the SSH server at %s does not complete the connection", address(s)), "check the log of its sshd", err}
	}
}

// methods returns the ways to authenticate.
func methods(s driver.SSH, secrets driver.Secrets) (methods []ssh.AuthMethod, closeAgent func(), err error) {
	closeAgent = func() {}
	if s.KeyFile != "" {
		signer, err := readKey(s.KeyFile, secrets.KeyPassphrase)
		if err != nil {
			return nil, closeAgent, err
		}
		methods = append(methods, ssh.PublicKeys(signer))
	}
	if s.AgentSocket != "" {
		conn, err := net.DialTimeout("unix", s.AgentSocket, dialTimeout)
		if err != nil {
			return nil, closeAgent, &Error{"the SSH agent does not answer", "start it, or name a key file with --identity-file: metal runs longer than most agents", err}
		}
		closeAgent = func() { _ = conn.Close() }
		methods = append(methods, ssh.PublicKeysCallback(agent.NewClient(conn).Signers))
	}
	if secrets.Password != "" {
		methods = append(methods, ssh.Password(secrets.Password))
	}
	if len(methods) == 0 {
		return nil, closeAgent, &Error{Problem: "there is no key and no password for " + address(s), Remedy: "name a key with --identity-file"}
	}
	return methods, closeAgent, nil
}

// maxKey bounds the file of a key.
const maxKey = 64 << 10

func readKey(file, passphrase string) (ssh.Signer, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, &Error{fmt.Sprintf("the private key %q can't be read", file), "metal reads it whenever it connects: name a file that stays, with --identity-file", err}
	}
	if info.Size() > maxKey {
		return nil, &Error{Problem: fmt.Sprintf("%q is not a private key", file), Remedy: "name the private key, not another file, with --identity-file"}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &Error{fmt.Sprintf("the private key %q can't be read", file), "let the user that runs metal read it", err}
	}
	signer, err := ssh.ParsePrivateKey(data)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		if passphrase == "" {
			return nil, &Error{Problem: fmt.Sprintf("the private key %q has a passphrase", file), Remedy: "pipe it into --passphrase-stdin, or use an agent with --ssh-agent"}
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(passphrase))
	}
	if err != nil {
		return nil, &Error{fmt.Sprintf("%q is not a private key that can be used", file), "name an OpenSSH private key with --identity-file", err}
	}
	return signer, nil
}

// hostKeys checks the key of one host.
type hostKeys struct {
	host   string
	pinned ssh.PublicKey
	pin    func(host, key string) error
	err    *Error
}

func newHostKeys(s driver.SSH, pin func(host, key string) error) (*hostKeys, error) {
	k := &hostKeys{host: s.Host, pin: pin}
	if s.HostKey == "" {
		return k, nil
	}
	var err error
	if k.pinned, _, _, _, err = ssh.ParseAuthorizedKey([]byte(s.HostKey)); err != nil {
		return nil, &Error{fmt.Sprintf("the pinned host key of %s is damaged", s.Host), "set it with --host-key", err}
	}
	return k, nil
}

// algorithms restricts the handshake to the type of the pinned key, since a server has one of each.
func (k *hostKeys) algorithms() []string {
	if k.pinned == nil {
		return nil
	}
	if k.pinned.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{k.pinned.Type()}
}

func (k *hostKeys) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	if k.pinned != nil {
		if bytes.Equal(key.Marshal(), k.pinned.Marshal()) {
			return nil
		}
		k.err = &Error{
			Problem: fmt.Sprintf("the host key of %s is %s, and the pinned one is %s: this may be another server", k.host, ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(k.pinned)),
			Remedy:  "if the server was reinstalled on purpose, set its new key with --host-key, or forget the old one with --host-key ''",
		}
		return k.err
	}
	if k.pin == nil {
		return nil
	}
	if err := k.pin(k.host, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))); err != nil {
		k.err = &Error{Problem: "the host key of " + k.host + " could not be pinned", Remedy: "check the log of metal", Err: err}
		return k.err
	}
	return nil
}
