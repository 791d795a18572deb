// Package receiver lets Git servers announce pushes, so that Flux fetches a branch at once instead
// of at its interval. One endpoint accepts the webhooks of GitHub, Gitea, Forgejo and GitLab:
//
//	POST /git/NAMESPACE, where NAMESPACE is that of Flux
//
// A request is authenticated with the token in the Secret TokenSecret of that namespace. Its
// content is not used for anything else. Requests that aren't authenticated all get the same
// answer. The package never fetches anything itself. Start with Setup.
package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const (
	// TokenSecret is the Secret with the token that a Git server signs its webhooks with, in the
	// namespace of Flux.
	TokenSecret = "git-webhook"
	// TokenKey is the key of the token in that Secret.
	TokenKey = "token"

	// minToken is the shortest token that is accepted.
	minToken = 16
	// maxBody is the largest webhook that a Git server sends.
	maxBody = 25 << 20
)

// Limits of requests to all repositories, authenticated or not: each reads a Secret.
const (
	perSecond = 5
	burst     = 20
)

// handler is the endpoint.
type handler struct {
	client client.Client
	// live reads Secrets, which are not cached.
	live  client.Reader
	limit *rate.Limiter
	clock clock.PassiveClock
	log   logr.Logger
}

func newHandler(c client.Client, live client.Reader, log logr.Logger) http.Handler {
	h := &handler{client: c, live: live, limit: rate.NewLimiter(perSecond, burst), clock: clock.RealClock{}, log: log}
	mux := http.NewServeMux()
	mux.Handle("POST /git/{namespace}", h)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	return mux
}

// ServeHTTP asks Flux to fetch a repository.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.limit.Allow() {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	err := h.receive(r)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, errUnauthenticated):
		w.WriteHeader(http.StatusNotFound)
	default:
		h.log.Error(err, "Receiving a webhook", "namespace", r.PathValue("namespace"))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// errUnauthenticated is the same for a wrong token, a missing one and a namespace that doesn't
// exist.
var errUnauthenticated = errors.New("the request is not authenticated")

func (h *handler) receive(r *http.Request) error {
	namespace := r.PathValue("namespace")
	token, err := h.token(r.Context(), namespace)
	if err != nil {
		return err
	}
	proof := newProof(token)
	if read, err := io.Copy(proof, io.LimitReader(r.Body, maxBody+1)); err != nil || read > maxBody {
		return errUnauthenticated
	}
	if !proof.verifies(r.Header) || len(token) < minToken {
		return errUnauthenticated
	}
	return h.request(r.Context(), client.ObjectKey{Namespace: namespace, Name: anywherev1.GitCredentials})
}

// token returns the token of a namespace. It is empty if there is none, so that the answer takes
// the same way.
func (h *handler) token(ctx context.Context, namespace string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := h.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: TokenSecret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", TokenSecret, err)
	}
	return secret.Data[TokenKey], nil
}

// request sets the annotation that makes Flux reconcile a GitRepository at once.
func (h *handler) request(ctx context.Context, key client.ObjectKey) error {
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fluxmeta.ReconcileRequestAnnotation, h.clock.Now().Format(time.RFC3339Nano))
	err := h.client.Patch(ctx, repository, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating GitRepository %q: %w", key, err)
	}
	return nil
}
