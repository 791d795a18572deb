package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/model/spec"
)

// projectKey is the key of the project of local machines in a Secret.
const projectKey = "PROJECT_ID"

// gather reads the objects that the Cluster references and validates all of them.
func (c *Controller) gather(ctx context.Context, s *scope) error {
	config, err := spec.Gather(ctx, c.Client, s.cluster.DeepCopy())
	var missing *spec.MissingError
	if errors.As(err, &missing) {
		return fail(anywherev1.MissingDependentObjectsReason, "%s", missing.Error())
	}
	if err != nil {
		return err
	}
	spec.Default(config)
	s.postponeRenewals(config.Cluster, c.Clock.Now())
	if wrong := spec.Validate(config); len(wrong) > 0 {
		return fail(anywherev1.ClusterInvalidReason, "%s", wrong.Error())
	}
	s.config = config
	s.input = build.Input{Config: config, Version: c.Version, Charts: c.Charts, CNIVersion: c.CNIVersion, Now: s.live.existing()}
	return nil
}

// claimName rejects a name that another Cluster has: it has objects of the name, or it is older.
// Admission rejects it first, unless both were created at the same time, or a former Cluster of the
// name left objects. Nothing is created before.
func (c *Controller) claimName(ctx context.Context, s *scope) error {
	if o := s.live.foreign; o != nil {
		return fail(anywherev1.ClusterInvalidReason, "%s", foreign(s.cluster, o, kindOf(o, c.Client.Scheme())).Error())
	}
	if s.live.cluster != nil {
		return nil
	}
	all := &anywherev1.ClusterList{}
	if err := c.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	for i := range all.Items {
		if other := &all.Items[i]; other.Name == s.cluster.Name && other.UID != s.cluster.UID && capacity.Precedes(other, s.cluster) {
			return fail(anywherev1.ClusterInvalidReason, "cluster name %s already exists; choose another name", s.cluster.Name)
		}
	}
	return nil
}

// findManagement checks that the management cluster of a workload cluster exists.
func (c *Controller) findManagement(ctx context.Context, s *scope) error {
	found, err := IsManagedHere(ctx, c.Client, s.cluster, c.ManagementCluster)
	if err != nil || found {
		return err
	}
	return fail(anywherev1.ManagementClusterRefInvalidReason, "%s is not a valid management cluster", s.cluster.ManagedBy())
}

// IsManagedHere reports whether the management cluster that a Cluster names is one of this
// management plane, whose own name may be plane. A Cluster that names none is managed here.
func IsManagedHere(ctx context.Context, reader client.Reader, c *anywherev1.Cluster, plane string) (bool, error) {
	name := c.ManagedBy()
	if c.IsSelfManaged() || name == "" || name == plane {
		return true, nil
	}
	manager, err := Named(ctx, reader, name)
	return manager != nil && manager.IsSelfManaged(), err
}

// Named returns the Cluster of a name in any namespace, or nil. Names are unique.
func Named(ctx context.Context, reader client.Reader, name string) (*anywherev1.Cluster, error) {
	all := &anywherev1.ClusterList{}
	if err := reader.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].Name == name {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// readCredentials reads Secrets of the system namespace. Their contents are only copied to other
// Secrets there.
func (c *Controller) readCredentials(ctx context.Context, s *scope) error {
	if s.config.Packet == nil {
		data, err := c.credentials(ctx, s, anywherev1.LocalCredentials)
		if err != nil {
			return err
		}
		if s.input.Project = string(data[projectKey]); s.input.Project == "" {
			return fail(anywherev1.DatacenterConfigInvalidReason, "Secret %q in namespace %q has no key %s", anywherev1.LocalCredentials, anywherev1.SystemNamespace, projectKey)
		}
	} else if _, err := c.credentials(ctx, s, s.config.Packet.CredentialsName()); err != nil {
		return err
	}
	mirror := s.cluster.Spec.RegistryMirrorConfiguration
	if mirror == nil || !mirror.Authenticate {
		return nil
	}
	return c.readRegistryCredentials(ctx, s)
}

// readRegistryCredentials reads the credentials of the mirror, if clusters in the namespace may
// send them to it.
func (c *Controller) readRegistryCredentials(ctx context.Context, s *scope) error {
	data, err := c.secret(ctx, anywherev1.RegistryCredentials)
	if err != nil {
		return err
	}
	meta, err := c.secretMetadata(ctx, anywherev1.RegistryCredentials)
	if err != nil {
		return err
	}
	endpoint := s.cluster.Spec.RegistryMirrorConfiguration.Address()
	if problem := spec.DenyRegistry(meta, s.cluster.Namespace, endpoint); problem != "" {
		return fail(anywherev1.ClusterInvalidReason, "%s", problem)
	}
	s.input.Registry = &build.Credentials{Username: string(data["username"]), Password: string(data["password"])}
	return nil
}

// credentials reads the credentials for machines, if clusters in the namespace may use them.
func (c *Controller) credentials(ctx context.Context, s *scope, name string) (map[string][]byte, error) {
	data, err := c.secret(ctx, name)
	if err != nil {
		return nil, err
	}
	meta, err := c.secretMetadata(ctx, name)
	if err != nil {
		return nil, err
	}
	if problem := spec.DenyCredentials(meta, s.cluster.Namespace); problem != "" {
		return nil, fail(anywherev1.DatacenterConfigInvalidReason, "%s", problem)
	}
	return data, nil
}

// secretMetadata reads the metadata of a Secret from the cache.
func (c *Controller) secretMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := c.Metadata.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, meta); err != nil {
		return nil, fmt.Errorf("reading the metadata of Secret %q: %w", name, err)
	}
	return meta, nil
}

// secret reads a Secret that an administrator creates.
func (c *Controller) secret(ctx context.Context, name string) (map[string][]byte, error) {
	data, err := c.Secrets.Data(ctx, "Secret", client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name})
	if apierrors.IsNotFound(err) {
		return nil, fail(anywherev1.MissingDependentObjectsReason, "Secret %q not found in namespace %q; ask an administrator to create it", name, anywherev1.SystemNamespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return data, nil
}

// build builds the wanted objects.
func (c *Controller) build(_ context.Context, s *scope) error {
	wanted, err := build.Objects(s.input)
	if err != nil {
		return fail(anywherev1.ClusterInvalidReason, "%s", err.Error())
	}
	s.wanted = wanted
	return nil
}
