package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/drover-dev/drover/internal/base/text"
)

const (
	// maxOutput bounds what Output returns, maxStderr what an error quotes.
	maxOutput = 4 << 20
	maxStderr = 2 << 10
)

// ExitError means that a command ran and failed.
type ExitError struct {
	Code   int
	Stderr string
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return fmt.Sprintf("exit code %d: %s", e.Code, e.Stderr)
}

// Streams are the streams of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	// Err receives standard error; without it, the end is part of the error.
	Err io.Writer
}

// Root runs a command line of the shell as root. A lost connection ends it with an error that is
// not an *ExitError, and the command may run on.
func (c *Client) Root(ctx context.Context, line string, s Streams) error {
	if !c.root {
		line = "sudo -n -- sh -c " + Quote(line)
	}
	return c.User(ctx, line, s)
}

// User runs a command line of the shell as the user who logs in. If the context ends, so does the
// connection.
func (c *Client) User(ctx context.Context, line string, s Streams) error {
	session, err := c.conn.NewSession()
	if err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	defer session.Close()
	// A session alone would stay open until its command ends.
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	last := &tail{}
	session.Stdin, session.Stdout, session.Stderr = s.In, s.Out, last
	if s.Err != nil {
		session.Stderr = s.Err
	}
	err = session.Run(line)
	var exit *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return &ExitError{Code: exit.ExitStatus(), Stderr: last.String()}
	case err != nil:
		return fmt.Errorf("the connection was lost: %w", err)
	}
	return nil
}

// Output runs a command line as root and returns the beginning of its output.
func (c *Client) Output(ctx context.Context, line string) (string, error) {
	out := &head{limit: maxOutput}
	err := c.Root(ctx, line, Streams{Out: out})
	return out.text.String(), err
}

// Send makes a file on the server have the content of a local one, executable by all. Content that
// is there already isn't sent again, and nobody sees a partial file.
func (c *Client) Send(ctx context.Context, file, to string) (sent bool, err error) {
	digest, err := Digest(file)
	if err != nil {
		return false, err
	}
	if have, err := c.Output(ctx, "sha256sum "+Quote(to)+" 2>/dev/null || true"); err != nil || strings.HasPrefix(have, digest) {
		return false, err
	}
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	part := path.Join(path.Dir(to), ".part-"+path.Base(to))
	line := fmt.Sprintf("set -e; mkdir -p %[1]s; cat > %[2]s; echo '%[3]s  '%[2]s | sha256sum -c --quiet; chmod 0755 %[2]s; mv -f %[2]s %[4]s",
		Quote(path.Dir(to)), Quote(part), digest, Quote(to))
	if err := c.Root(ctx, line, Streams{In: f}); err != nil {
		return false, fmt.Errorf("sending %q: %w", path.Base(to), err)
	}
	return true, nil
}

// Digest returns the SHA-256 of a file.
func Digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Quote returns a word that a shell reads back unchanged.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// head keeps the first bytes that are written to it.
type head struct {
	limit int
	text  bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.text.Write(p[:min(len(p), max(h.limit-h.text.Len(), 0))])
	return len(p), nil
}

// tail keeps the last bytes that are written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxStderr):]
	return len(p), nil
}

func (t *tail) String() string {
	return text.TruncateTo(strings.TrimSpace(strings.ToValidUTF8(string(t.text), "")), maxStderr)
}
