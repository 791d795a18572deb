package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/text"
)

// maxReason bounds what a server contributes to a message, in bytes.
const maxReason = 400

// errNoRepository means that a server ended the session without an answer, as it does for a
// repository that doesn't exist.
var errNoRepository = errors.New("no answer from the server")

// errDenied means that an SSH server accepted none of the keys.
var errDenied = errors.New("the server accepts none of the keys")

// serverError is a message of the server.
type serverError struct {
	message string
	cause   error
}

func (e *serverError) Error() string { return e.message }
func (e *serverError) Unwrap() error { return e.cause }

// explain turns an error of an exchange with the server into one of the types of this package.
// Errors of a context that ended are the caller's business and stay what they are.
func (r *Repository) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("accessing repository %q: %w", r.remote.URL, context.Cause(ctx))
	}
	err = unwrapUnexpected(err)
	if known := r.known(err); known != nil {
		return known
	}
	f := r.failure(err)
	switch {
	case isAny(err, transport.ErrAuthenticationRequired, transport.ErrAuthorizationFailed, errDenied):
		return &AuthenticationError{f}
	case isAny(err, transport.ErrRepositoryNotFound, errNoRepository):
		return &NotFoundError{f}
	case isUnreachable(err):
		return &UnreachableError{failure: f}
	default:
		return &ProtocolError{f}
	}
}

// known returns errors that have a type of their own in other packages.
func (r *Repository) known(err error) error {
	if large, ok := errors.AsType[*bounded.TooLargeError](err); ok {
		return &TooLargeError{failure: r.failure(err), What: "the answer of the server", Limit: large.Limit}
	}
	if large, ok := errors.AsType[*TooLargeError](err); ok {
		large.failure = r.failure(nil)
		return large
	}
	if key, ok := errors.AsType[*knownhosts.KeyError](err); ok {
		return &IdentityError{failure: r.failure(err), Changed: len(key.Want) > 0}
	}
	if _, ok := errors.AsType[*knownhosts.RevokedError](err); ok {
		return &IdentityError{failure: r.failure(err), Changed: true}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &IdentityError{failure: r.failure(err)}
	}
	return nil
}

// isUnreachable reports whether a connection or an HTTP server failed, as opposed to what it said.
func isUnreachable(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*githttp.Err](err); ok {
		return true
	}
	if _, ok := errors.AsType[*ssh.ExitMissingError](err); ok {
		return true
	}
	return isAny(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, bounded.ErrTimeout, context.DeadlineExceeded, packp.ErrEmptyInput)
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// unwrapUnexpected removes the wrappers of go-git that hide their cause from errors.As.
func unwrapUnexpected(err error) error {
	if hidden, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		return hidden.Err
	}
	if hidden, ok := errors.AsType[*plumbing.PermanentError](err); ok {
		return hidden.Err
	}
	return err
}

func (r *Repository) failure(err error) failure {
	f := failure{Repository: r.remote.URL, cause: err}
	if err != nil {
		f.reason = printable(redact(err.Error(), r.remote.Credentials.secrets()))
	}
	return f
}

// printable turns what a server said into one bounded line.
func printable(message string) string {
	message = strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(message, "\uFFFD"))
	return text.TruncateTo(strings.Join(strings.Fields(message), " "), maxReason)
}
