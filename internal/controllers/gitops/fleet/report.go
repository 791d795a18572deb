package fleet

import (
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Report is what the newest commit means for one FluxConfig. Kustomizations show the rest.
type Report struct {
	// Revision is the commit.
	Revision string
	// Problems are why clusters of the namespace aren't applied, sorted.
	Problems []string
	// Unconfirmed are the Clusters of the namespace whose files were removed although they are in
	// use, sorted.
	Unconfirmed []string
}

// Reports are the newest reports by FluxConfig. They are lost on a restart, and written again as
// soon as the repository is read.
type Reports struct {
	mu    sync.Mutex
	known map[client.ObjectKey]Report
	// changed has the FluxConfigs with a new report.
	changed chan event.TypedGenericEvent[client.ObjectKey]
}

// NewReports returns an empty set.
func NewReports() *Reports {
	return &Reports{known: map[client.ObjectKey]Report{}, changed: make(chan event.TypedGenericEvent[client.ObjectKey], 100)}
}

// Changed sends the FluxConfigs whose reports have changed, to one receiver.
func (r *Reports) Changed() <-chan event.TypedGenericEvent[client.ObjectKey] { return r.changed }

// Get returns the report for a FluxConfig, or nil.
func (r *Reports) Get(key client.ObjectKey) *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, ok := r.known[key]
	if !ok {
		return nil
	}
	return &report
}

// set stores a report and announces it if it is new.
func (r *Reports) set(key client.ObjectKey, report Report) {
	slices.Sort(report.Problems)
	slices.Sort(report.Unconfirmed)
	r.mu.Lock()
	last, ok := r.known[key]
	r.known[key] = report
	r.mu.Unlock()
	if !ok || !last.equal(report) {
		r.changed <- event.TypedGenericEvent[client.ObjectKey]{Object: key}
	}
}

func (r Report) equal(other Report) bool {
	return r.Revision == other.Revision && slices.Equal(r.Problems, other.Problems) && slices.Equal(r.Unconfirmed, other.Unconfirmed)
}

// keep removes the reports for all other FluxConfigs.
func (r *Reports) keep(valid map[client.ObjectKey]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.known, func(key client.ObjectKey, _ Report) bool { return !valid[key] })
}
