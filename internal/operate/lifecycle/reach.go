package lifecycle

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const (
	// reachTimeout is how long a management plane may take to answer at all.
	reachTimeout = 10 * time.Second
	// answerInterval is how often a new API server is tried, and answerTimeout how long one try may
	// take: its address may not be routed yet.
	answerInterval = 500 * time.Millisecond
	answerTimeout  = time.Second
)

// UnreachableError means that a management plane can't be used, and says what to do.
type UnreachableError struct {
	Host, Problem, Remedy string
	Err                   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the management plane at %s %s: %s", e.Host, e.Problem, e.Remedy)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Reach checks that a management plane answers, accepts the credentials, and has Drover's kinds.
func Reach(ctx context.Context, config *rest.Config, kubeconfig string) error {
	if err := checkClientCertificate(config, kubeconfig, time.Now()); err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.Timeout = reachTimeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = d.ServerResourcesForGroupVersion(anywherev1.GroupVersion.String())
	return explainUnreachable(err, config.Host, kubeconfig)
}

// untilAnswers waits until the cluster's own API server and controllers run, and returns the
// connection. The kubeconfig exists before that.
func (w *Workload) untilAnswers(ctx context.Context) (*rest.Config, error) {
	tick := time.NewTicker(answerInterval)
	defer tick.Stop()
	for {
		config, err := w.answering(ctx)
		if err == nil {
			return config, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (w *Workload) answering(ctx context.Context) (*rest.Config, error) {
	config, err := w.plane.RESTConfig(ctx, w.Config.Cluster)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	asking := rest.CopyConfig(config)
	asking.Timeout = answerTimeout
	d, err := discovery.NewDiscoveryClientForConfig(asking)
	if err != nil {
		return nil, err
	}
	// A controller creates this account. Writing much before the controllers run delays nodes.
	return config, d.RESTClient().Get().AbsPath("/api/v1/namespaces/kube-system/serviceaccounts/default").Do(ctx).Error()
}

// explainUnreachable explains the error of the first request.
func explainUnreachable(err error, host, kubeconfig string) error {
	if err == nil {
		return nil
	}
	e := &UnreachableError{Host: host, Err: err}
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var network net.Error
	switch {
	case apierrors.IsNotFound(err):
		e.Problem, e.Remedy = "has no kind Cluster of anywhere.eks.amazonaws.com", "it is not a management cluster, or Drover is not installed there; see `drover create cluster --help`"
	case apierrors.IsUnauthorized(err):
		e.Problem, e.Remedy = "rejected your credentials", fmt.Sprintf("those in %s are invalid or expired; ask an administrator for new ones", kubeconfig)
	case apierrors.IsForbidden(err):
		e.Problem, e.Remedy = "denied access", fmt.Sprintf("%v; ask an administrator for the role drover-cluster-creator", err)
	case errors.As(err, &authority), errors.As(err, &name):
		e.Problem, e.Remedy = "is not the one in the kubeconfig", fmt.Sprintf("%s has another certificate authority or host name for it (%v); get a new kubeconfig", kubeconfig, err)
	case errors.As(err, &invalid):
		e.Problem, e.Remedy = "has an invalid certificate", fmt.Sprintf("%v; compare the clocks, and renew its certificates", err)
	case errors.As(err, &network):
		e.Problem, e.Remedy = "does not answer", fmt.Sprintf("its clusters keep running, but can't be created, changed or deleted until it is back (%v)", err)
	default:
		return fmt.Errorf("discovering the kinds of the management plane at %s: %w", host, err)
	}
	return e
}

// checkClientCertificate reports an expired certificate, which the server would only reject.
func checkClientCertificate(config *rest.Config, kubeconfig string, now time.Time) error {
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("reading the client certificate in %s: %w", kubeconfig, err)
	}
	if now.After(cert.NotAfter) {
		return &UnreachableError{
			Host: config.Host, Problem: "would reject your credentials",
			Remedy: fmt.Sprintf("the client certificate of %q in %s expired at %s; get a new kubeconfig, for example with `drover kubeconfig`",
				cert.Subject.CommonName, kubeconfig, cert.NotAfter.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}
