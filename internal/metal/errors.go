package metal

import (
	"net/http"

	"github.com/drover-dev/drover/internal/metal/request"
)

// Errors whose text clients depend on.
var (
	errNotFound  = &request.Error{Status: http.StatusNotFound, Messages: []string{"Not found"}}
	errDenied    = &request.Error{Status: http.StatusForbidden, Messages: []string{"Access denied for the current authentication token"}}
	errToken     = &request.Error{Status: http.StatusUnauthorized, Messages: []string{"Invalid authentication token"}}
	errOhSnap    = &request.Error{Status: http.StatusInternalServerError, Messages: []string{"Oh snap, something went wrong! We've logged the error and will take a look - please reach out to us if you continue having trouble."}}
	errRateLimit = &request.Error{Status: http.StatusTooManyRequests, Messages: []string{"Rate limit exceeded, please try again later"}}
)
