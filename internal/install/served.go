package install

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/text"
)

const (
	// servedInterval is how often discovery is read, which can't be watched.
	servedInterval = 100 * time.Millisecond
	// touchAfter is how long a CRD may take to be served before it is touched, and twice as long each
	// further time: an API server that is only slow must not get more to do. A free machine needs less
	// than a second.
	touchAfter = 4 * time.Second
	// namedDefinitions is how many CRDs an error names.
	namedDefinitions = 3
)

// TouchAnnotation is when a CRD was last changed in order to be served.
const TouchAnnotation = "drover.dev/touched-at"

// ourDefinitions selects Drover's CRDs.
var ourDefinitions = metav1.ListOptions{LabelSelector: config.LabelPartOf + "=" + config.PartOf}

// awaitServed waits until the API server serves the CRDs, whoever wrote them: an install that was
// killed leaves CRDs that are up to date and not served yet.
//
// An API server establishes a CRD when it observes an update of it. If it is killed after it has
// accepted the names of a CRD, the next one observes no update, so a late CRD is touched.
func (c *cluster) awaitServed(ctx context.Context, definitions []object) error {
	tick := time.NewTicker(servedInterval)
	defer tick.Stop()
	patience := touchAfter
	touch := time.Now().Add(patience)
	var missing []string // as of the last answer
	for {
		answer, err := c.notServed(ctx, definitions)
		if ctx.Err() != nil && len(missing) > 0 {
			return fmt.Errorf("waiting for %s to be served: %w", text.FirstN(missing, namedDefinitions), ctx.Err())
		}
		if err != nil || len(answer) == 0 {
			return err
		}
		missing = answer
		if now := time.Now(); now.After(touch) {
			if err := c.touch(ctx, missing); err != nil {
				return err
			}
			patience *= 2
			touch = now.Add(patience)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// notServed returns the names of the CRDs that discovery lacks, with one request for all.
func (c *cluster) notServed(ctx context.Context, definitions []object) ([]string, error) {
	body, err := c.discovery.Get().AbsPath("/apis").
		SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("discovering the served kinds: %w", err)
	}
	list := &apidiscoveryv2.APIGroupDiscoveryList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, fmt.Errorf("decoding the served kinds: %w", err)
	}
	served := servedNames(list)
	var missing []string
	for _, obj := range definitions {
		if !served[obj.name] {
			missing = append(missing, obj.name)
		}
	}
	return missing, nil
}

// servedNames returns the names that the CRDs of all served kinds have or would have.
func servedNames(list *apidiscoveryv2.APIGroupDiscoveryList) map[string]bool {
	names := map[string]bool{}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				names[resource.Resource+"."+group.Name] = true
			}
		}
	}
	return names
}

// touch changes CRDs without changing what they define.
func (c *cluster) touch(ctx context.Context, definitions []string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, TouchAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	for _, name := range definitions {
		_, err := c.metadata.Resource(definitionsKind).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if err != nil {
			return fmt.Errorf("touching CRD %q, which is not served: %w", name, err)
		}
	}
	return nil
}
