package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// lostTimeout bounds one attempt to find out what a lost write has done.
	lostTimeout = 30 * time.Second
	// maxListing bounds the answer, in bytes.
	maxListing = 64 << 20
)

// lostWrite is a request whose answer never came. Whether the API server carried it out can only be
// told by what is there afterwards.
type lostWrite struct{}

// lost notes a write without an answer, and finds out in the background what is there now: all
// objects of that kind and namespace count as written, and those that only the cache still has as
// deleted. Until that is known, the object's next reconcile is held back.
func (t *tracker) lost(r *http.Request, from origin, at place) {
	mark := &lostWrite{}
	from.ledger.note(from.request, write{resource: at.resource, lost: mark})
	list := *r.URL
	list.Path, list.RawPath, list.RawQuery = at.list, "", ""
	go func() {
		backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 10 * time.Second}
		for {
			there, err := t.listMetadata(list.String())
			if err == nil {
				from.ledger.replace(from.request, mark, t.effects(at, there))
				return
			}
			select {
			case <-t.stopped:
				return
			case <-time.After(backoff.Step()):
			}
		}
	}()
}

// listMetadata reads the metadata of objects from the API server, not from its watch cache.
func (t *tracker) listMetadata(url string) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lostTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // the API server of the lost request
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	resp, err := t.http.Do(r) //nolint:gosec // the API server of the lost request
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("listing objects after a lost response: %s", resp.Status)
	}
	answer := &metav1.PartialObjectMetadataList{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxListing)).Decode(answer); err != nil {
		return nil, fmt.Errorf("listing objects after a lost response: %w", err)
	}
	return answer, nil
}

// effects turns what is there into writes that informers have to see.
func (t *tracker) effects(at place, there *metav1.PartialObjectMetadataList) []write {
	var effects []write
	uids := map[types.UID]bool{}
	for i := range there.Items {
		o := &there.Items[i]
		uids[o.UID] = true
		effects = append(effects, write{resource: at.resource, key: at.key(o.Name), version: o.ResourceVersion})
	}
	for _, informer := range t.of(at.resource) {
		for _, cached := range informer.GetStore().List() {
			o, ok := cached.(metav1.Object)
			older := ok && reached(there.ResourceVersion, o.GetResourceVersion())
			if older && o.GetNamespace() == at.namespace && !uids[o.GetUID()] {
				effects = append(effects, write{resource: at.resource, key: at.key(o.GetName()), uid: o.GetUID()})
			}
		}
	}
	return effects
}
