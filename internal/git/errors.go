package git

import (
	"fmt"
	"strings"
)

// failure is what all errors of a repository have in common. reason is printable, bounded and free
// of credentials; cause is for errors.Is and errors.As, and its text is never printed.
type failure struct {
	// Repository is the URL of the repository, which contains no credentials.
	Repository string

	reason string
	cause  error
}

func (f *failure) Unwrap() error { return f.cause }

// because appends the reason to a message, if there is one.
func (f *failure) because(message string) string {
	if f.reason == "" {
		return message
	}
	return message + ": " + f.reason
}

// AuthenticationError means that the server denied access to whom the credentials identify.
type AuthenticationError struct{ failure }

func (e *AuthenticationError) Error() string {
	return e.because(fmt.Sprintf("authenticating to repository %q: access denied; check the credentials and their permissions", e.Repository))
}

// IdentityError means that the server couldn't prove its identity: its host key or certificate is
// unknown, or differs from the expected one. Nothing was sent to it.
type IdentityError struct {
	failure

	// Changed is set if a different key is known for the host, which may be an attack.
	Changed bool
}

func (e *IdentityError) Error() string {
	advice := "add its key to the known hosts, or its CA"
	if e.Changed {
		advice = "its host key differs from the known one; ask its administrator before you replace it"
	}
	return e.because(fmt.Sprintf("verifying the server of repository %q: %s", e.Repository, advice))
}

// NotFoundError means that the repository doesn't exist or is hidden from these credentials.
type NotFoundError struct{ failure }

func (e *NotFoundError) Error() string {
	return e.because(fmt.Sprintf("repository %q not found; check the URL, and that the credentials may read it", e.Repository))
}

// RejectedError means that the server received a commit and rejected it: the branch is protected, a
// hook declined it, or the server couldn't store it.
type RejectedError struct {
	failure

	Branch string
}

func (e *RejectedError) Error() string {
	return e.because(fmt.Sprintf("pushing to branch %q of repository %q: rejected by the server; if the branch is protected, allow this user to push to it", e.Branch, e.Repository))
}

// UnreachableError means that there was no complete answer. A later attempt may succeed.
type UnreachableError struct {
	failure

	// Commit is set if it may or may not have reached the server.
	Commit string
}

func (e *UnreachableError) Error() string {
	message := fmt.Sprintf("connecting to repository %q", e.Repository)
	if e.Commit != "" {
		message = fmt.Sprintf("pushing commit %s to repository %q (it may have arrived)", short(e.Commit), e.Repository)
	}
	return e.because(message)
}

// ProtocolError means that the answer isn't one of a Git server.
type ProtocolError struct{ failure }

func (e *ProtocolError) Error() string {
	return e.because(fmt.Sprintf("reading repository %q: the answer is not valid Git protocol; check the URL", e.Repository))
}

// ConflictError means that others changed the branch each time before a commit could be pushed.
type ConflictError struct {
	failure

	Branch   string
	Attempts int
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("pushing to branch %q of repository %q: others changed it during each of %d attempts; try again", e.Branch, e.Repository, e.Attempts)
}

// TooLargeError means that a repository or a file exceeds a limit.
type TooLargeError struct {
	failure

	// What exceeds the limit, such as "file a/b.yaml".
	What string
	// Limit is a number of bytes or files.
	Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("reading repository %q: %s, which exceeds the limit of %d; use a repository for cluster configuration only", e.Repository, e.What, e.Limit)
}

// short abbreviates a commit for people.
func short(commit string) string {
	if len(commit) > 12 {
		return commit[:12]
	}
	return commit
}

// redact removes secrets from a text that others wrote.
func redact(message string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, "[redacted]")
		}
	}
	return message
}
