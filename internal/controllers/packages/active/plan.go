package active

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/workload"
)

var namespacesWatch = workload.Watch{Resource: corev1.SchemeGroupVersion.WithResource("namespaces")}

// copiesWatch is for the copies on one cluster.
func copiesWatch(cluster string) workload.Watch {
	return workload.Watch{Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Selector: copyLabel + "=" + cluster}
}

// copied is what was done on a cluster, through one connection.
type copied struct {
	through *workload.Cluster
	written map[spot]mark
	// others are places where somebody else has a Secret of that name, with the edition that was to go there.
	others    map[spot]string
	err       error
	at        time.Time
	withdrawn bool
}

// mark is what was written, and when.
type mark struct {
	stamp, version string
	at             time.Time
}

// present is a copy as the cluster's watch tells it.
type present struct{ stamp, version string }

// plan is what to do on a cluster.
type plan struct{ write, remove []spot }

func (p plan) empty() bool { return len(p.write) == 0 && len(p.remove) == 0 }

// situation is all that a plan depends on.
type situation struct {
	now time.Time
	// wanted are editions by place.
	wanted map[spot]string
	there  map[spot]present
	copied copied
	// exists says that there is such a namespace on the cluster.
	exists func(namespace string) bool
}

// makePlan compares.
func makePlan(s situation) plan {
	var p plan
	for _, at := range sorted(s.wanted) {
		if !s.fine(at) {
			p.write = append(p.write, at)
		}
	}
	for _, at := range sorted(s.there) {
		if _, ok := s.wanted[at]; !ok {
			p.remove = append(p.remove, at)
		}
	}
	return p
}

// fine says that a place has what it should have, or can't. What was just written counts, although the watch does not tell it yet; what
// somebody else has changed since is written again; and what somebody else has made is left alone.
func (s *situation) fine(at spot) bool {
	wanted := s.wanted[at]
	there, is := s.there[at]
	wrote := s.copied.written[at]
	was := wrote.stamp == wanted
	if is {
		return was && there.stamp == wanted && !behind(wrote.version, there.version)
	}
	return was && s.now.Sub(wrote.at) < settle || s.copied.others[at] == wanted || !s.room(at.namespace)
}

// room says that there is a namespace, or that it can be made.
func (s *situation) room(namespace string) bool {
	return namespace == packagesv1.Namespace || s.exists(namespace)
}

// observeCopies looks at what the cluster's watches tell. A cluster that neither needs nor has credentials is not watched.
func (v *visit) observeCopies(f *facts, known *knowledge) {
	c := &f.credentials
	wanted := c.wanted()
	if len(wanted) == 0 && !f.held {
		return
	}
	copies, namespaces := f.connected.Follow(copiesWatch(f.name)), f.connected.Follow(namespacesWatch)
	if !copies.Synced() || !namespaces.Synced() {
		c.unseen = true
		return
	}
	done := known.copied
	if done.through != f.connected {
		done = copied{}
	}
	there := map[spot]present{}
	for _, o := range copies.All() {
		there[spot{o.Namespace, o.Name}] = present{stamp: o.Annotations[stampAnnotation], version: o.ResourceVersion}
	}
	c.plan = makePlan(situation{now: f.now, wanted: wanted, there: there, copied: done, exists: func(name string) bool {
		return alive(namespaces.Get("", name))
	}})
}

func alive(o *metav1.PartialObjectMetadata) bool { return o != nil && o.DeletionTimestamp.IsZero() }

func compare(a, b string) int { return strings.Compare(a, b) }
