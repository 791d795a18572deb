package manager

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/drover-dev/drover/internal/manager/webhookcert"
)

// metricsOptions serves metrics only to clients that the API server authorizes: those with a token,
// and those with a client certificate where its CA is known.
func (o Options) metricsOptions(certs *webhookcert.Certs, clients *callers) metricsserver.Options {
	m := metricsserver.Options{BindAddress: o.MetricsAddr}
	if o.MetricsAddr == "0" || o.InsecureMetrics {
		return m
	}
	m.SecureServing = true
	m.FilterProvider = clients.metricsFilter
	m.TLSOpts = []func(*tls.Config){serveWith(certs), clients.request}
	return m
}

// metricsFilter authorizes clients with a certificate, and leaves all others to the filter for
// tokens.
func (c *callers) metricsFilter(cfg *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	tokens, err := filters.WithAuthenticationAndAuthorization(cfg, client)
	if err != nil || !c.users {
		return tokens, err
	}
	kube, err := kubernetes.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		others, err := tokens(log, handler)
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !hasCertificate(r) {
				others.ServeHTTP(w, r)
				return
			}
			if err := c.authorize(r, kube); err != nil {
				c.logRejection("Rejected a request for metrics", r, err)
				http.Error(w, "not authorized to read metrics", http.StatusForbidden)
				return
			}
			handler.ServeHTTP(w, r)
		}), nil
	}, nil
}

// authorize asks the API server whether the user of a certificate may read metrics.
func (c *callers) authorize(r *http.Request, kube kubernetes.Interface) error {
	if err := c.verify(r, trust.checkChain); err != nil {
		return err
	}
	subject := r.TLS.PeerCertificates[0].Subject
	review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: subject.CommonName, Groups: append([]string{"system:authenticated"}, subject.Organization...),
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("authorizing %q: %w", subject.CommonName, err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%q may not get %s", subject.CommonName, r.URL.Path)
	}
	return nil
}
