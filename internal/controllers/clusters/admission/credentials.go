package admission

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/model/spec"
)

// credentialRules decide who may use which Secret as credentials for machines.
type credentialRules struct {
	live client.Reader
	// mayWrite reports whether a user may write a Secret of the system namespace, which only
	// administrators may.
	mayWrite func(ctx context.Context, user authenticationv1.UserInfo, secret string) (bool, error)
}

func newCredentialRules(live client.Reader, users *requester.Reviewer) *credentialRules {
	return &credentialRules{live: live, mayWrite: func(ctx context.Context, user authenticationv1.UserInfo, secret string) (bool, error) {
		return users.May(ctx, user, authorizationv1.ResourceAttributes{
			Verb: "update", Resource: "secrets", Namespace: anywherev1.SystemNamespace, Name: secret,
		})
	}}
}

// ofDatacenter rejects a reference to a Secret that the namespace or the user may not use. The
// controller checks Secrets that do not exist yet, and the namespace of objects that are being
// moved.
func (r *credentialRules) ofDatacenter(ctx context.Context, d *anywherev1.PacketDatacenterConfig) error {
	problem, err := r.deny(ctx, d, d.CredentialsName())
	if problem != "" {
		return invalid("spec.credentialsRef.name: " + problem)
	}
	return err
}

// ofCluster rejects a cluster of local machines in a namespace that, or by a user who, may not use
// them. Credentials for other machines are checked with their datacenter.
func (r *credentialRules) ofCluster(ctx context.Context, c *anywherev1.Cluster) error {
	local, err := r.isLocal(ctx, c)
	if err != nil || !local {
		return err
	}
	problem, err := r.deny(ctx, c, anywherev1.LocalCredentials)
	if problem != "" {
		return invalid("spec.datacenterRef: " + problem)
	}
	return err
}

// deny returns why an object may not use a Secret. If the Secret does not exist yet, the controller
// decides about the namespace later, but nobody knows the user then.
func (r *credentialRules) deny(ctx context.Context, o metav1.Object, name string) (string, error) {
	secret, err := r.secret(ctx, name)
	if err != nil {
		return "", err
	}
	missing := secret == nil
	if missing {
		secret = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	switch problem := spec.DenyCredentials(secret, o.GetNamespace()); {
	case problem != "" && missing:
		return "", nil
	case problem != "" && o.GetAnnotations()[anywherev1.PausedAnnotation] != "true":
		return problem, nil
	}
	return r.onlyAdministrators(ctx, secret, o.GetNamespace())
}

// ofMirror rejects a mirror that the namespace may not send registry credentials to. The controller
// checks a Secret that does not exist yet, and objects that are being moved.
func (r *credentialRules) ofMirror(ctx context.Context, c *anywherev1.Cluster) error {
	mirror := c.Spec.RegistryMirrorConfiguration
	if mirror == nil || !mirror.Authenticate || c.IsPaused() {
		return nil
	}
	secret, err := r.secret(ctx, anywherev1.RegistryCredentials)
	if err != nil || secret == nil {
		return err
	}
	if problem := spec.DenyRegistry(secret, c.Namespace, mirror.Address()); problem != "" {
		return invalid("spec.registryMirrorConfiguration.authenticate: " + problem)
	}
	return nil
}

// isLocal reports whether the machines of a cluster are local ones.
func (r *credentialRules) isLocal(ctx context.Context, c *anywherev1.Cluster) (bool, error) {
	ref := c.Spec.DatacenterRef
	if ref.Kind != anywherev1.PacketDatacenterConfigKind {
		return ref.Kind == anywherev1.DockerDatacenterConfigKind, nil
	}
	d := &anywherev1.PacketDatacenterConfig{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, d); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return d.CredentialsName() == anywherev1.LocalCredentials, nil
}

// onlyAdministrators returns why the user of a request may not use a Secret that is reserved for
// administrators in a namespace. A user who may write the Secret could open it anyway.
func (r *credentialRules) onlyAdministrators(ctx context.Context, secret metav1.Object, namespace string) (string, error) {
	if !spec.ForAdministrators(secret, namespace) {
		return "", nil
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return "", err
	}
	may, err := r.mayWrite(ctx, request.UserInfo, secret.GetName())
	if err != nil {
		return "", fmt.Errorf("checking whether %q may write Secret %q: %w", request.UserInfo.Username, secret.GetName(), err)
	}
	if may {
		return "", nil
	}
	return fmt.Sprintf("Secret %q in namespace %q may be used in namespace %q by administrators only; ask an administrator to add the namespace to the annotation %s",
		secret.GetName(), anywherev1.SystemNamespace, namespace, anywherev1.CredentialsNamespacesAnnotation), nil
}

// secret reads the metadata of a Secret, or nil if it does not exist.
func (r *credentialRules) secret(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.live.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of Secret %q: %w", name, err)
	}
	return secret, nil
}
