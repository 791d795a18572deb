package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
	"github.com/drover-dev/drover/internal/git/forge"
	"github.com/drover-dev/drover/internal/git/rest"
)

// tokenOf returns the token for the API of a forge: a separate one, or the password of HTTPS.
func tokenOf(url string, data map[string][]byte) string {
	if token := data[flux.KeyToken]; len(token) > 0 {
		return string(token)
	}
	if git.IsSSH(url) {
		return "" // The password is the passphrase of the key.
	}
	return string(data["password"])
}

// send sends a status unless the forge has it, or has rejected it with the same credentials. A
// commit that was still pending is overtaken by the next one.
func (c *Controller) send(ctx context.Context, s *scope, want forge.Status) error {
	if s.sent == want || s.rejected == want && s.credentials == s.version {
		return nil
	}
	to, err := forge.New(s.options)
	if err != nil {
		return c.reject(s, want, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if last := s.sent; last.State == forge.Pending && last.Commit != want.Commit {
		last.State, last.Description = forge.Success, fmt.Sprintf("Overtaken by %.12s, which has the status of all clusters", want.Commit)
		if err := to.SetStatus(ctx, last); err != nil {
			return c.failed(ctx, s, want, err)
		}
		s.sent = last
	}
	if err := to.SetStatus(ctx, want); err != nil {
		return c.failed(ctx, s, want, err)
	}
	s.sent, s.rejected, s.announced = want, forge.Status{}, ""
	return nil
}

// failed decides whether a status is sent again: after a while if the forge didn't answer or is
// overloaded, and otherwise with other credentials or with the next status.
func (c *Controller) failed(ctx context.Context, s *scope, want forge.Status, err error) error {
	ctrl.LoggerFrom(ctx).Info("Sending a commit status failed", "commit", want.Commit, "reason", err.Error())
	if isTemporary(err) {
		return &reconcile.Wait{Reason: failedReason, Message: err.Error(), After: retrySend}
	}
	return c.reject(s, want, err)
}

// reject notes that the forge is not to be asked again with the same status and credentials.
func (c *Controller) reject(s *scope, want forge.Status, err error) error {
	s.rejected, s.credentials = want, s.version
	c.announce(s, err)
	return nil
}

// isTemporary reports whether the same request may succeed later.
func isTemporary(err error) bool {
	answer, ok := errors.AsType[*rest.Error](err)
	return !ok || answer.Status >= http.StatusInternalServerError || answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusRequestTimeout
}
