package manager

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
)

// Limits of TokenReviews: how many clients of webhooks can cause per second, how long one may take,
// and how long its answer is reused.
const (
	reviewQPS     = 10
	reviewBurst   = 20
	reviewTimeout = 5 * time.Second
	reviewTTL     = time.Minute
)

// errNoToken means that a client presented no valid token.
var errNoToken = errors.New("a valid token is required")

// newTokens returns what identifies clients by their tokens. It asks the API server, at its own
// rate, so that invalid tokens take nothing away from controllers. Answers are cached by the hash
// of the token; the rate bounds how many.
func newTokens(cfg *rest.Config) (authenticator.Request, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = reviewQPS, reviewBurst
	reviews, err := authenticationv1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	tokens, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{},
		CacheTTL:                 reviewTTL,
		TokenAccessReviewClient:  reviews,
		TokenAccessReviewTimeout: reviewTimeout,
		WebhookRetryBackoff:      &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 2},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("preparing the verification of tokens: %w", err)
	}
	return tokens, nil
}

// checkToken accepts the service account of the API server.
func (c *callers) checkToken(r *http.Request) error {
	response, known, err := c.tokens.AuthenticateRequest(r)
	switch {
	case err != nil:
		return fmt.Errorf("verifying a token: %w", err)
	case !known:
		return errNoToken
	case response.User.GetName() != c.account:
		return fmt.Errorf("verifying a token: %q is not the API server", response.User.GetName())
	}
	return nil
}
