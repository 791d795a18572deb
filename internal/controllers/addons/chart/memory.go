package chart

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/history"
)

// programs caches the parsed templates of each HelmChartProxy, which every event of a cluster
// needs.
type programs struct {
	mu  sync.Mutex
	all map[ctrlclient.ObjectKey]*entry
}

// entry caches one HelmChartProxy.
type entry struct {
	uid        types.UID
	generation int64
	program    *desired.Program // nil if err is not
	digest     string
	err        error

	mu       sync.Mutex
	recorded bool
}

func (e *entry) isRecorded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.recorded
}

func (e *entry) setRecorded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = true
}

func (p *programs) get(chart *addonsv1.HelmChartProxy) *entry {
	key := ctrlclient.ObjectKeyFromObject(chart)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.all[key]; e != nil && e.uid == chart.UID && e.generation == chart.Generation {
		return e
	}
	if p.all == nil {
		p.all = map[ctrlclient.ObjectKey]*entry{}
	}
	e := compile(chart)
	p.all[key] = e
	return e
}

func compile(chart *addonsv1.HelmChartProxy) *entry {
	e := &entry{uid: chart.UID, generation: chart.Generation}
	spec := chart.Spec.DeepCopy()
	program, problems := desired.Compile(spec)
	if len(problems) > 0 {
		e.err = problems.ToAggregate()
		return e
	}
	e.program = program
	if e.digest, e.err = history.Digest(spec); e.err != nil {
		e.program = nil
	}
	return e
}

func (p *programs) forget(key ctrlclient.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, key)
}

// settled remembers for which inputs a cluster needed no change, so that values are not rendered
// again. It is empty after a restart, which costs one rendering.
type settled struct {
	mu  sync.Mutex
	all map[ctrlclient.ObjectKey]map[types.UID]string
}

func (s *settled) has(chart ctrlclient.ObjectKey, cluster types.UID, stamp string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stamp != "" && s.all[chart][cluster] == stamp
}

func (s *settled) set(chart ctrlclient.ObjectKey, cluster types.UID, stamp string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[ctrlclient.ObjectKey]map[types.UID]string{}
	}
	if s.all[chart] == nil {
		s.all[chart] = map[types.UID]string{}
	}
	s.all[chart][cluster] = stamp
}

func (s *settled) forget(chart ctrlclient.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, chart)
}

// retain drops clusters that are no longer selected.
func (s *settled) retain(chart ctrlclient.ObjectKey, chosen []*target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all[chart]) <= len(chosen) {
		return
	}
	was := s.all[chart]
	s.all[chart] = map[types.UID]string{}
	for _, t := range chosen {
		if stamp, ok := was[t.cluster.UID]; ok {
			s.all[chart][t.cluster.UID] = stamp
		}
	}
}

// stampOf identifies all inputs of the change for a cluster. It is empty without a release, which
// always needs a change.
func stampOf(s *scope, t *target, f desired.Facts) string {
	if t.release == nil {
		return ""
	}
	h := fnv.New128a()
	fmt.Fprint(h, s.chart.UID, s.chart.Generation, s.chart.Labels[clusterv1.WatchLabel], t.cluster.Generation)
	if s.program.Uses().Cluster.Status {
		fmt.Fprint(h, t.cluster.ResourceVersion)
	}
	if f.ControlPlane != nil {
		fmt.Fprint(h, " c", f.ControlPlane.GetUID(), f.ControlPlane.GetResourceVersion())
	}
	if f.InfraCluster != nil {
		fmt.Fprint(h, " i", f.InfraCluster.GetUID(), f.InfraCluster.GetResourceVersion())
	}
	if a := t.release.Status.Applied; a != nil {
		fmt.Fprintf(h, "%q%q", a.UpgradeStage, a.Kubernetes)
	}
	fmt.Fprintf(h, "%q", s.chart.Annotations[addonsv1.UpgradeStageAnnotation])
	fmt.Fprint(h, t.release.UID, t.release.Generation, t.release.DeletionTimestamp, t.release.OwnerReferences)
	for _, m := range []map[string]string{t.cluster.Labels, t.cluster.Annotations, t.release.Labels, t.release.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(h, "%q%q", key, m[key])
		}
		fmt.Fprint(h, ";")
	}
	return string(h.Sum(nil))
}
