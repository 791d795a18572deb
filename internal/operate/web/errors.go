package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// maxMessage bounds the message of an error in a response.
const maxMessage = 2000

// problem is the body of every response that reports an error.
type problem struct {
	Error string `json:"error"`
	// Try is what the user can do about it.
	Try string `json:"try,omitempty"`
}

// Remedies.
const (
	trySignIn = "Run `drover ui` again, and open the address that it prints."
	tryRenew  = "Renew the credentials in the kubeconfig, then run `drover ui` again."
	tryAccess = "Ask an administrator for a role in the namespace, such as drover-viewer or drover-cluster-creator."
	tryReload = "Somebody else changed it. Look at the current state, then try again."
)

// usageError is a request that can't be fulfilled as it is.
type usageError struct{ message, try string }

func (e *usageError) Error() string { return e.message }

// respond writes a value as JSON, or an error.
func respond(w http.ResponseWriter, value any, err error) {
	if err != nil {
		report(w, err)
		return
	}
	writeJSON(w, http.StatusOK, value)
}

// report writes an error with the status that says whose it is.
func report(w http.ResponseWriter, err error) {
	var usage *usageError
	var missing *inspect.NotFoundError
	var early *inspect.NotInitializedError
	reason, rejected := inspect.Rejection(err)
	switch {
	case errors.As(err, &usage):
		fail(w, http.StatusUnprocessableEntity, usage.message, usage.try)
	case errors.As(err, &missing), apierrors.IsNotFound(err):
		fail(w, http.StatusNotFound, err.Error(), "It may have been deleted. Go back to the fleet.")
	case errors.As(err, &early):
		fail(w, http.StatusConflict, err.Error(), "Wait until the control plane is initialized.")
	case apierrors.IsUnauthorized(err):
		fail(w, http.StatusUnauthorized, "the management plane no longer accepts your credentials", tryRenew)
	case rejected:
		fail(w, http.StatusUnprocessableEntity, reason, "")
	case apierrors.IsForbidden(err):
		fail(w, http.StatusForbidden, err.Error(), tryAccess)
	case apierrors.IsConflict(err), apierrors.IsInvalid(err) && changed(err):
		fail(w, http.StatusConflict, "the object was changed since this page showed it", tryReload)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		fail(w, http.StatusUnprocessableEntity, err.Error(), "")
	default:
		fail(w, http.StatusBadGateway, err.Error(), "Check the management plane: `drover status`.")
	}
}

// changed reports whether a patch failed because its test of the resource version did.
func changed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return len(status.Status().Details.Causes) == 0
}

func fail(w http.ResponseWriter, code int, message, try string) {
	writeJSON(w, code, problem{Error: text.TruncateTo(message, maxMessage), Try: try})
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // responses are values of our own types
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data) // the browser may be gone
}

func quote(s string) string { return strconv.Quote(text.TruncateTo(s, 100)) }
