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
	"github.com/drover-dev/drover/internal/model/spec"
)

// projectKey is the key of the project of local machines in a Secret.
const projectKey = "PROJECT_ID"

// gather reads the objects that the Cluster references and validates all of them.
func (c *Controller) gather(ctx context.Context, s *scope) (bool, error) {
	config, err := spec.Gather(ctx, c.Client, s.cluster.DeepCopy())
	var missing *spec.MissingError
	if errors.As(err, &missing) {
		return s.fail(anywherev1.MissingDependentObjectsReason, "%s", missing.Error())
	}
	if err != nil {
		return false, err
	}
	spec.Default(config)
	if wrong := spec.Validate(config); len(wrong) > 0 {
		return s.fail(anywherev1.ClusterInvalidReason, "%s", wrong.Error())
	}
	s.config = config
	s.input = build.Input{Config: config, Version: c.Version, Charts: c.Charts, CNIVersion: c.CNIVersion, Now: s.live.existing()}
	return true, nil
}

// findManagement checks that the management cluster of a workload cluster exists.
func (c *Controller) findManagement(ctx context.Context, s *scope) (bool, error) {
	name := s.cluster.ManagedBy()
	if s.cluster.IsSelfManaged() || name == "" || name == c.ManagementCluster {
		return true, nil
	}
	manager, err := Named(ctx, c.Client, name)
	if err != nil {
		return false, err
	}
	if manager == nil || !manager.IsSelfManaged() {
		return s.fail(anywherev1.ManagementClusterRefInvalidReason, "%s is not a valid management cluster", name)
	}
	return true, nil
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

// readCredentials reads Secrets of the system namespace. Their contents are only copied to other Secrets there.
func (c *Controller) readCredentials(ctx context.Context, s *scope) (bool, error) {
	if s.config.Packet == nil {
		data, further, err := c.credentials(ctx, s, anywherev1.LocalCredentials)
		if !further {
			return false, err
		}
		if s.input.Project = string(data[projectKey]); s.input.Project == "" {
			return s.fail(anywherev1.DatacenterConfigInvalidReason, "Secret %q in namespace %q has no key %s", anywherev1.LocalCredentials, anywherev1.SystemNamespace, projectKey)
		}
	} else if _, further, err := c.credentials(ctx, s, s.config.Packet.CredentialsName()); !further {
		return false, err
	}
	mirror := s.cluster.Spec.RegistryMirrorConfiguration
	if mirror == nil || !mirror.Authenticate {
		return true, nil
	}
	data, further, err := c.secret(ctx, s, anywherev1.RegistryCredentials)
	s.input.Registry = &build.Credentials{Username: string(data["username"]), Password: string(data["password"])}
	return further, err
}

// credentials reads the credentials for machines, if clusters in the namespace may use them.
func (c *Controller) credentials(ctx context.Context, s *scope, name string) (map[string][]byte, bool, error) {
	data, further, err := c.secret(ctx, s, name)
	if !further {
		return nil, false, err
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := c.Metadata.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, meta); err != nil {
		return nil, false, fmt.Errorf("reading the metadata of Secret %q: %w", name, err)
	}
	if problem := spec.DenyCredentials(meta, s.cluster.Namespace); problem != "" {
		further, err := s.fail(anywherev1.DatacenterConfigInvalidReason, "%s", problem)
		return nil, further, err
	}
	return data, true, nil
}

// secret reads a Secret that an administrator creates.
func (c *Controller) secret(ctx context.Context, s *scope, name string) (map[string][]byte, bool, error) {
	data, err := c.Secrets.Data(ctx, "Secret", client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name})
	if apierrors.IsNotFound(err) {
		further, err := s.fail(anywherev1.MissingDependentObjectsReason, "Secret %q not found in namespace %q; ask an administrator to create it", name, anywherev1.SystemNamespace)
		return nil, further, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return data, true, nil
}

// build builds the wanted objects.
func (c *Controller) build(_ context.Context, s *scope) (bool, error) {
	if there := s.live.cluster; there != nil && !owns(s.cluster, there) {
		return s.fail(anywherev1.ClusterInvalidReason, "%s", foreign(there, "Cluster of Cluster API").Error())
	}
	wanted, err := build.Objects(s.input)
	if err != nil {
		return s.fail(anywherev1.ClusterInvalidReason, "%s", err.Error())
	}
	s.wanted = wanted
	return true, nil
}
