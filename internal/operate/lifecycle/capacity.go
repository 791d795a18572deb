package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/access"
	packet "github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// The plan and metro of machines on this host, which a DockerDatacenterConfig uses.
const (
	localPlan  = "local.small"
	localMetro = "da"
)

const capacityTimeout = 5 * time.Second

// checkCapacity asks the metal API whether there are enough machines, if the user may ask.
func (w *Workload) checkCapacity(ctx context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil // The cluster has some of them already.
	}
	credentials, err := w.credentials(ctx)
	switch {
	case apierrors.IsForbidden(err):
		p.Note("skipping the capacity check: you may not read the credentials for machines")
		return nil
	case err != nil:
		return []error{err}
	}
	return canHave(ctx, p, credentials, demand(w.Config))
}

// credentials reads those that the cluster will use.
func (w *Workload) credentials(ctx context.Context) (access.Credentials, error) {
	name := credentialsName(w.Config)
	secret := &corev1.Secret{}
	err := w.plane.Client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return access.Credentials{}, fmt.Errorf("no credentials for machines: ask an administrator to create Secret %q in namespace %q with the keys %s and %s",
			name, anywherev1.SystemNamespace, access.TokenKey, access.URLKey)
	case err != nil:
		return access.Credentials{}, err
	}
	return access.FromSecret(secret), nil
}

func credentialsName(c *spec.Config) string {
	if c.Packet != nil {
		return c.Packet.CredentialsName()
	}
	return anywherev1.LocalCredentials
}

// canHave checks all demands in one request.
func canHave(ctx context.Context, p *phase.Progress, credentials access.Credentials, demands []packet.Demand) []error {
	if len(demands) == 0 || credentials.URL == "" || credentials.Token == "" {
		return nil
	}
	api, err := packet.New(packet.Options{URL: credentials.URL, Token: credentials.Token, CA: []byte(credentials.CA), Timeout: capacityTimeout})
	if err != nil {
		return []error{err}
	}
	available, err := api.CanHave(ctx, demands)
	switch {
	case packet.Is(err, packet.Invalid):
		return []error{fmt.Errorf("the spec requests unavailable machines: %w", err)}
	case packet.Is(err, packet.Unauthorized):
		return []error{fmt.Errorf("the metal API rejected the credentials for machines: ask an administrator to renew them (%w)", err)}
	case err != nil:
		p.Note("skipping the capacity check: %v", err)
		return nil
	}
	var problems []error
	for i, d := range demands {
		if !available[i] {
			problems = append(problems, fmt.Errorf("not enough machines: %d of type %s needed in %s%s; free some, request fewer, or choose another type", d.Quantity, d.Plan, d.Metro, d.Facility))
		}
	}
	return problems
}

// demand returns the machines that a cluster needs, by type. Reserved machines are not counted.
func demand(c *spec.Config) []packet.Demand {
	var out []packet.Demand
	add := func(ref *anywherev1.Ref, n int) {
		d := packet.Demand{Plan: localPlan, Metro: localMetro, Quantity: n}
		if c.Packet != nil {
			if ref == nil || c.Machines[ref.Name] == nil || c.Machines[ref.Name].Spec.HardwareReservationID != "" {
				return
			}
			d.Plan, d.Metro, d.Facility = c.Machines[ref.Name].Spec.MachineType, c.Packet.Spec.Metro, c.Packet.Spec.Facility
		}
		i := slices.IndexFunc(out, func(x packet.Demand) bool { return x.Plan == d.Plan && x.Metro == d.Metro && x.Facility == d.Facility })
		if i < 0 {
			out, i = append(out, packet.Demand{Plan: d.Plan, Metro: d.Metro, Facility: d.Facility}), len(out)
		}
		out[i].Quantity += n
	}
	add(c.Cluster.Spec.ControlPlaneConfiguration.MachineGroupRef, c.Cluster.Spec.ControlPlaneConfiguration.Count)
	for _, g := range c.Cluster.Spec.WorkerNodeGroupConfigurations {
		if g.Count != nil && *g.Count > 0 {
			add(g.MachineGroupRef, *g.Count)
		}
	}
	return out
}
