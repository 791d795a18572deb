package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/access"
	packet "github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

const capacityTimeout = 5 * time.Second

// checkCredentials reports that the credentials for machines don't exist, if the user may know.
func (w *Workload) checkCredentials(ctx context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil
	}
	if err := w.credentials(ctx); err != nil && !apierrors.IsForbidden(err) {
		return []error{err}
	}
	return nil
}

// credentials reports an error if those that the cluster will use don't exist or can't be read.
func (w *Workload) credentials(ctx context.Context) error {
	name := demand.Credentials(w.Config)
	err := w.plane.Client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("no credentials for machines: ask an administrator to create Secret %q in namespace %q with the keys %s and %s",
			name, anywherev1.SystemNamespace, access.TokenKey, access.URLKey)
	}
	return err
}

// checkCapacity asks the management plane whether there are machines for a new cluster. It has the
// credentials for machines, which the user need not have.
func (w *Workload) checkCapacity(ctx context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil // The cluster has some of them already.
	}
	return w.canAdd(ctx, p, demand.Of(w.Config))
}

// checkGrowth asks the same for the machines that an upgrade adds, including spare ones.
func (w *Workload) checkGrowth(ctx context.Context, p *phase.Progress) []error {
	if p.Resumed() {
		return nil
	}
	live, err := w.live(ctx)
	if err != nil {
		return []error{err}
	}
	was, err := spec.Gather(ctx, w.plane.Client, live)
	if err != nil {
		return nil // The cluster reports what it misses.
	}
	return w.canAdd(ctx, p, demand.Added(was, w.Config))
}

// canAdd submits the Cluster as a dry run together with the machines that it needs, and turns the
// warning that there are not enough of them into a problem.
func (w *Workload) canAdd(ctx context.Context, p *phase.Progress, machines []demand.Machines) []error {
	if w.SkipCapacity {
		p.Note("skipping the capacity check")
		return nil
	}
	if len(machines) == 0 {
		return nil
	}
	question, err := json.Marshal(demand.Check{Credentials: demand.Credentials(w.Config), Machines: machines})
	if err != nil {
		return []error{err}
	}
	cluster := w.Config.Cluster.DeepCopy()
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[anywherev1.CapacityCheckAnnotation] = string(question)
	plane, warnings, err := w.withWarnings()
	if err != nil {
		return []error{err}
	}
	// Other checks report why it is rejected.
	_, _ = apply(ctx, client.NewDryRunClient(plane.Client), cluster)
	return warnings.shortages()
}

// withWarnings returns another connection to the management plane that collects warnings.
func (w *Workload) withWarnings() (*inspect.Plane, *warningCollector, error) {
	config, collected := rest.CopyConfig(w.REST), &warningCollector{}
	config.WarningHandler, config.WarningHandlerWithContext = collected, nil
	plane, err := inspect.Connect(config)
	return plane, collected, err
}

// warningCollector collects the warnings of an API server.
type warningCollector struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (c *warningCollector) HandleWarningHeader(_ int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

// shortages returns the warnings about machines as problems.
func (c *warningCollector) shortages() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	for _, text := range c.texts {
		if missing, found := strings.CutPrefix(text, demand.WarningPrefix); found {
			problems = append(problems, shortage(missing))
		}
	}
	return problems
}

func shortage(missing string) error {
	return fmt.Errorf("%s%s needed; free some, request fewer, or choose another type; to let the cluster wait for them, add --skip-validations=capacity", demand.WarningPrefix, missing)
}

// canHave checks all machines of a management cluster in one request, with the user's credentials.
func canHave(ctx context.Context, p *phase.Progress, credentials access.Credentials, machines []demand.Machines) []error {
	if len(machines) == 0 || credentials.URL == "" || credentials.Token == "" {
		return nil
	}
	api, err := packet.New(packet.Options{URL: credentials.URL, Token: credentials.Token, CA: []byte(credentials.CA), Timeout: capacityTimeout})
	if err != nil {
		return []error{err}
	}
	var demands []packet.Demand
	for _, m := range machines {
		demands = append(demands, packet.Demand{Plan: m.Plan, Metro: m.Metro, Facility: m.Facility, Quantity: m.Count})
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
	for i, m := range machines {
		if !available[i] {
			problems = append(problems, shortage(m.String()))
		}
	}
	return problems
}
