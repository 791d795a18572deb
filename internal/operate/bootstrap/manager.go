package bootstrap

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
)

const (
	// deployment is the name of the manifest with the Deployment of the manager.
	deployment = "deployment"
	// offerFlag is the flag of the manager with the address of its registry.
	offerFlag = "--offer-addr"
)

// site is what the Deployment of the manager takes from the cluster that it runs on.
type site struct {
	replicas int32
	// requireCertificates makes webhooks reject clients other than the API servers.
	requireCertificates bool
}

// manager returns the manifests of the manager, with the options filled in.
func (o Options) manager(on site) ([]config.Manifest, error) {
	manifests := config.Manager()
	for i, m := range manifests {
		if m.Name != deployment {
			continue
		}
		data, err := o.configure(m.Data, on)
		if err != nil {
			return nil, fmt.Errorf("configuring the Deployment of the manager: %w", err)
		}
		manifests[i].Data = data
	}
	return manifests, nil
}

func (o Options) configure(manifest []byte, on site) ([]byte, error) {
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(manifest, d); err != nil {
		return nil, err
	}
	d.Spec.Replicas = &on.replicas
	c := &d.Spec.Template.Spec.Containers[0]
	c.Image = o.Image
	c.Args = setFlag(c.Args, offerFlag, cmp.Or(o.Registry, config.OfferAddress))
	if on.requireCertificates {
		c.Args = setFlag(c.Args, "--webhook-client-ca", "cluster")
	}
	if o.Flux != nil {
		c.Args = withGitOps(c.Args)
	}
	return yaml.Marshal(d)
}

// withGitOps adds the flags of GitOps: Git servers announce pushes behind a Service.
func withGitOps(args []string) []string {
	if !slices.Contains(args, gitOpsFlag) {
		args = append(args, gitOpsFlag)
	}
	return setFlag(args, gitWebhookFlag, gitWebhookAddr)
}

// hasGitOps reports whether the Deployment of the manager has the flags of GitOps.
func hasGitOps(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return slices.Contains(c.Args, gitOpsFlag) })
}

// ManagerRegistry returns the loopback address of the registry of a cluster's manager, or the empty
// string if the cluster has no manager.
func ManagerRegistry(ctx context.Context, on *rest.Config) (string, error) {
	d, err := managerOf(ctx, on)
	if err != nil || d == nil {
		return "", err
	}
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if address, found := strings.CutPrefix(arg, offerFlag+"="); found {
			return address, nil
		}
	}
	return "", nil
}

// setFlag replaces the value of a flag, or adds the flag.
func setFlag(args []string, name, value string) []string {
	flag := name + "=" + value
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, name+"=") }); i >= 0 {
		return slices.Replace(args, i, i+1, flag)
	}
	return append(args, flag)
}
