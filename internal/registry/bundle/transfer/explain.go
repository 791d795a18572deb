package transfer

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// explain converts an error of the library. It removes URLs, which may contain credentials.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrStalled) {
		return ErrStalled
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return errors.New("the registry doesn't support TLS\nTry: --plain-http")
	}
	var answered *transport.Error
	if errors.As(err, &answered) {
		return explainAnswer(answered)
	}
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}

func explainAnswer(answered *transport.Error) error {
	meaning := fmt.Sprintf("registry responded %d %s", answered.StatusCode, http.StatusText(answered.StatusCode))
	if len(answered.Errors) > 0 {
		meaning += ", " + string(answered.Errors[0].Code)
	}
	switch answered.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, meaning)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("access denied: %s\nTry: docker login or helm registry login", meaning)
	default:
		return errors.New(meaning)
	}
}
