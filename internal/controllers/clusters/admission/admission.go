// Package admission implements the webhooks of Clusters and their configs: rules that depend on the
// old object, on other objects or on the user. Package spec contains the rules that depend on a
// spec alone, and the command line applies the same ones. Some messages are fixed, because existing
// scripts match them.
//
// An update that does not change the spec is never rejected, so that finalizers of others can be
// removed, except for one that removes the finalizer of a Cluster. Start with Setup.
package admission

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/controllers/requester"
)

// Options configure the rules.
type Options struct {
	// Version returns the Kubernetes version of a minor version.
	Version func(minor string) (string, error)
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	// Capacity checks whether there are machines; nil checks nothing.
	Capacity Capacity
	// Quotas are those of namespaces; nil checks none.
	Quotas Quotas
	// Records records deletions, and changes of configs.
	Records *records.Recorder
}

// Setup adds the webhooks of all kinds.
func Setup(mgr ctrl.Manager, o Options) error {
	users := &requester.Reviewer{Client: mgr.GetClient()}
	credentials := newCredentialRules(mgr.GetAPIReader(), users)
	clusters := &clusterRules{
		Options: o, reader: mgr.GetClient(), live: mgr.GetAPIReader(), users: users, credentials: credentials, records: o.Records, now: time.Now,
	}
	err := ctrl.NewWebhookManagedBy(mgr, &anywherev1.Cluster{}).WithDefaulter(clusters).WithValidator(clusters).Complete()
	if err != nil {
		return fmt.Errorf("adding the webhooks of Cluster: %w", err)
	}
	return newConfigWebhooks(clusters).add(mgr)
}

// rejection rejects an operation.
func rejection(format string, args ...any) error {
	return answer(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...))
}

// forbidden rejects what a quota does not allow, with the code that Kubernetes uses for quotas.
func forbidden(text string) error {
	return answer(http.StatusForbidden, metav1.StatusReasonForbidden, text)
}

// invalid rejects the content of an object.
func invalid(text string) error {
	return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, text)
}

func answer(code int32, reason metav1.StatusReason, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text}}
}
