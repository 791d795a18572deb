package transfer

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// explain says what an error of the library means, without the addresses in it, which may have credentials.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrStalled) {
		return ErrStalled
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return errors.New("the registry does not speak TLS: --plain-http allows that")
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
	meaning := fmt.Sprintf("the registry answered %d %s", answered.StatusCode, http.StatusText(answered.StatusCode))
	if len(answered.Errors) > 0 {
		meaning += ", " + string(answered.Errors[0].Code)
	}
	switch answered.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, meaning)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("access denied: %s: log in with `docker login` or `helm registry login`", meaning)
	default:
		return errors.New(meaning)
	}
}
