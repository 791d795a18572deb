// Package admission holds the rules for Clusters and their configs that depend on more than one object: on what was there before, on others of
// the same name, on who asks. What can be said of a spec alone is said by package spec, here as on the command line. The texts are those that
// people's scripts know.
//
// An update that leaves the spec alone is never refused: finalizers must come off. Start with Setup.
package admission

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
)

// Options are what the rules depend on.
type Options struct {
	// Version is the version of Kubernetes for a minor.
	Version func(minor string) (string, error)
	// ManagementCluster is the name that this management plane goes by, if it has no Cluster of its own.
	ManagementCluster string
	// Records takes who deletes a Cluster.
	Records *records.Recorder
}

// Setup adds the webhooks of all kinds.
func Setup(mgr ctrl.Manager, o Options) error {
	clusters := &clusterRules{Options: o, reader: mgr.GetClient(), live: mgr.GetAPIReader(), mayImpersonate: review(mgr.GetClient()), records: o.Records, now: time.Now}
	err := ctrl.NewWebhookManagedBy(mgr, &anywherev1.Cluster{}).WithDefaulter(clusters).WithValidator(clusters).Complete()
	if err != nil {
		return fmt.Errorf("adding the webhooks of Cluster: %w", err)
	}
	return errors.Join(
		add(mgr, &anywherev1.DockerDatacenterConfig{}, configRules[*anywherev1.DockerDatacenterConfig]{}),
		add(mgr, &anywherev1.PacketDatacenterConfig{}, configRules[*anywherev1.PacketDatacenterConfig]{
			spec: func(o *anywherev1.PacketDatacenterConfig) any { return o.Spec }, fixed: always, more: allowedCredentials(mgr.GetAPIReader()),
		}),
		add(mgr, &anywherev1.PacketMachineConfig{}, configRules[*anywherev1.PacketMachineConfig]{
			spec: func(o *anywherev1.PacketMachineConfig) any { return o.Spec },
		}),
		add(mgr, &anywherev1.FluxConfig{}, configRules[*anywherev1.FluxConfig]{spec: func(o *anywherev1.FluxConfig) any { return o.Spec }, fixed: always}),
		add(mgr, &anywherev1.GitOpsConfig{}, configRules[*anywherev1.GitOpsConfig]{spec: func(o *anywherev1.GitOpsConfig) any { return o.Spec }, fixed: always}),
		add(mgr, &anywherev1.OIDCConfig{}, configRules[*anywherev1.OIDCConfig]{spec: func(o *anywherev1.OIDCConfig) any { return o.Spec }, fixed: ofManagement}),
	)
}

func add[T client.Object](mgr ctrl.Manager, object T, rules configRules[T]) error {
	if err := ctrl.NewWebhookManagedBy(mgr, object).WithValidator(&rules).Complete(); err != nil {
		return fmt.Errorf("adding the webhook of %T: %w", object, err)
	}
	return nil
}

// refusal is an answer for what can't be done.
func refusal(format string, args ...any) error {
	return answer(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...))
}

// invalid is an answer for what has to be written otherwise.
func invalid(text string) error {
	return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, text)
}

func answer(code int32, reason metav1.StatusReason, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text}}
}
