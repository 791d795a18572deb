package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
	packet "github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/model/backup/objects"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/operate/recovery"
)

// deletedInterval is how often a device that is being deleted is read.
const deletedInterval = time.Second

// project is where machines are.
type project struct {
	access.Credentials
	ID string
}

func (o project) connect() (*packet.Client, error) {
	return packet.New(packet.Options{URL: o.URL, Token: o.Token, CA: []byte(o.CA), UserAgent: "drover"})
}

// compare compares the clusters of the backup with the machines that exist now.
func (r *Recovery) compare(ctx context.Context) error {
	projects, err := r.projects()
	if err != nil {
		return err
	}
	var devices []recovery.Device
	for _, one := range projects {
		found, err := one.devices(ctx)
		if err != nil {
			return err
		}
		devices = append(devices, found...)
	}
	r.clusters, err = recovery.Compare(r.Backup.Objects, r.Target.Config.Cluster.Name, devices)
	return err
}

func (o project) devices(ctx context.Context) ([]recovery.Device, error) {
	c, err := o.connect()
	if err != nil {
		return nil, err
	}
	all, err := c.Devices(ctx, o.ID)
	if err != nil {
		return nil, fmt.Errorf("listing the machines of project %q: %w", o.ID, err)
	}
	out := make([]recovery.Device, 0, len(all))
	for _, d := range all {
		out = append(out, recovery.Device{ID: d.ID, Hostname: d.Hostname, Tags: d.Tags})
	}
	return out, nil
}

// ownProject returns the project of the management cluster's own machines. It is nil if this host
// has no metal service, so that there are none.
func (r *Recovery) ownProject() (*project, error) {
	secret, err := r.Target.credentials()
	if r.Target.Config.Packet == nil && errors.Is(err, metal.ErrNoMetal) {
		return nil, nil // There are no machines.
	}
	if err != nil {
		return nil, err
	}
	return &project{Credentials: access.FromSecret(secret), ID: string(secret.Data[bootstrap.ProjectKey])}, nil
}

// startMetal starts the metal service of this host, which knows the machines, if it has any.
func (r *Recovery) startMetal(ctx context.Context, p *phase.Progress) error {
	if r.Target.Config.Packet != nil {
		return nil
	}
	e, err := r.Target.Metal.ReadEndpoint()
	if errors.Is(err, metal.ErrNoMetal) {
		return nil
	}
	if err != nil {
		return err
	}
	p.Waiting("Starting the metal service")
	if _, err := service.Ensure(ctx, r.Target.Metal, e.Driver); err != nil {
		return fmt.Errorf("starting the metal service, which knows the machines of this host: %w", err)
	}
	return nil
}

// projects returns all projects with machines of clusters in the backup, and that of the management
// cluster. The credentials for machines of this host are the current ones.
func (r *Recovery) projects() ([]project, error) {
	own, err := r.ownProject()
	if err != nil {
		return nil, err
	}
	var all []project
	if own != nil {
		all = append(all, *own)
	}
	for _, u := range r.Backup.Objects.Of(infrav1.GroupVersion.WithKind("PacketCluster").GroupKind()) {
		c := &infrav1.PacketCluster{}
		if err := objects.As(u, c); err != nil {
			return nil, err
		}
		if one := r.projectOf(c, own); one.URL != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// projectOf returns the project of a cluster, with the credentials that the backup has for it.
func (r *Recovery) projectOf(c *infrav1.PacketCluster, own *project) project {
	out := project{ID: c.Spec.ProjectID}
	ref := c.Spec.CredentialsRef
	switch {
	case own != nil && (ref == nil || ref.Name == anywherev1.LocalCredentials):
		out.Credentials = own.Credentials
	case ref != nil:
		data := r.Backup.Objects.Secret(client.ObjectKey{Namespace: c.Namespace, Name: ref.Name})
		out.Credentials = access.FromSecret(&corev1.Secret{Data: data})
	}
	if own != nil && out.Token == own.Token {
		out.Credentials = own.Credentials
	}
	return out
}

// remains returns the machines of the lost management cluster that still exist.
func (r *Recovery) remains(ctx context.Context) ([]recovery.Device, error) {
	own, err := r.ownProject()
	if err != nil || own == nil {
		return nil, err
	}
	all, err := own.devices(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d recovery.Device) bool {
		return tags.ParseMachine(d.Tags).Cluster != r.Target.Config.Cluster.Name
	}), nil
}

// checkGone rejects the recovery of a management cluster of which something is left that could act
// on the workload clusters, unless its machines are to be deleted.
func (r *Recovery) checkGone(ctx context.Context, p *phase.Progress) []error {
	done := false
	if _, err := p.Kept(keptReplace, &done); err != nil || done || r.DeleteOld {
		return wrapped(err)
	}
	name := r.Target.Config.Cluster.Name
	if host := r.answering(ctx); host != "" {
		return []error{fmt.Errorf("management cluster %q still answers at %s, and two must never act on the same clusters: repair it, or add --delete-old to delete its machines first", name, host)}
	}
	left, err := r.remains(ctx)
	if err != nil {
		return []error{err}
	}
	if len(left) == 0 {
		return nil
	}
	names := make([]string, 0, len(left))
	for _, d := range left {
		names = append(names, d.Hostname)
	}
	return []error{fmt.Errorf("management cluster %q doesn't answer, but has machines that may still act on its clusters: %s: repair it, or add --delete-old to delete them first", name, text.FirstN(names, maxNamed))}
}

// maxNamed is how many machines a message lists.
const maxNamed = 5

func wrapped(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// answering returns the address of the lost management cluster if its API server answers, with
// whatever response.
func (r *Recovery) answering(ctx context.Context) string {
	config, err := kubeconfig.Connect(r.Target.files().Kubeconfig())
	if err != nil {
		return "" // Without a kubeconfig, only its machines can be found.
	}
	config = rest.CopyConfig(config)
	config.Timeout = reachTimeout
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return ""
	}
	err = api.CoreV1().RESTClient().Get().AbsPath("/livez").Do(ctx).Error()
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return config.Host
	}
	return ""
}

// deleteRemains deletes the machines of the lost management cluster, waits until they are gone, and
// makes sure that nothing else answers in their place.
func (r *Recovery) deleteRemains(ctx context.Context, p *phase.Progress) error {
	own, err := r.ownProject()
	if err != nil {
		return err
	}
	if own != nil {
		if err := r.deleteFrom(ctx, p, own); err != nil {
			return err
		}
	}
	if host := r.answering(ctx); host != "" {
		return fmt.Errorf("management cluster %q still answers at %s although its machines in this project are deleted: stop it first", r.Target.Config.Cluster.Name, host)
	}
	return nil
}

// deleteFrom deletes the machines in a project. Which ones is recorded first, so that a later run
// deletes no others.
func (r *Recovery) deleteFrom(ctx context.Context, p *phase.Progress, own *project) error {
	var left []recovery.Device
	known, err := p.Kept(keptRemains, &left)
	if err == nil && !known {
		left, err = r.remains(ctx)
		if err == nil {
			err = p.Keep(keptRemains, left)
		}
	}
	if err != nil {
		return err
	}
	c, err := own.connect()
	if err != nil {
		return err
	}
	for _, d := range left {
		p.Waiting("Deleting machine %s of the lost management cluster", d.Hostname)
		if err := deleteDevice(ctx, c, d.ID); err != nil {
			return fmt.Errorf("deleting machine %q of the lost management cluster: %w", d.Hostname, err)
		}
	}
	return nil
}

func deleteDevice(ctx context.Context, c *packet.Client, id string) error {
	if err := c.DeleteDevice(ctx, id); err != nil && !packet.Is(err, packet.NotFound) {
		return err
	}
	tick := time.NewTicker(deletedInterval)
	defer tick.Stop()
	for {
		_, err := c.Device(ctx, id)
		if packet.Is(err, packet.NotFound) {
			return nil
		}
		if err != nil && ctx.Err() == nil && !packet.Is(err, packet.Unavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
