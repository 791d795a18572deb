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

// copiesWatch selects the copies on one cluster.
func copiesWatch(cluster string) workload.Watch {
	return workload.Watch{Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Selector: copyLabel + "=" + cluster}
}

// copied is what was done on a cluster through one connection.
type copied struct {
	through *workload.Cluster
	written map[secretKey]writtenCopy
	// others are existing Secrets of others with the name of a copy, and the stamp of that copy.
	others    map[secretKey]string
	err       error
	at        time.Time
	withdrawn bool
}

// writtenCopy is a copy that was written, and when.
type writtenCopy struct {
	stamp, version string
	at             time.Time
}

// present is a copy as the watch of the cluster reports it.
type present struct{ stamp, version string }

// plan lists the Secrets to write and delete on a cluster.
type plan struct{ write, remove []secretKey }

func (p plan) empty() bool { return len(p.write) == 0 && len(p.remove) == 0 }

// situation is the input of a plan.
type situation struct {
	now time.Time
	// wanted are the stamps of the wanted copies.
	wanted map[secretKey]string
	there  map[secretKey]present
	copied copied
	// exists reports whether a namespace exists on the cluster.
	exists func(namespace string) bool
}

// makePlan compares the wanted with the existing copies.
func makePlan(s situation) plan {
	var p plan
	for _, at := range sorted(s.wanted) {
		if !s.upToDate(at) {
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

// upToDate reports whether a copy needs no write: it exists unchanged, was just written, belongs to
// others, or its namespace doesn't exist.
func (s *situation) upToDate(at secretKey) bool {
	wanted := s.wanted[at]
	there, is := s.there[at]
	wrote := s.copied.written[at]
	was := wrote.stamp == wanted
	if is {
		return was && there.stamp == wanted && !olderVersion(wrote.version, there.version)
	}
	return was && s.now.Sub(wrote.at) < watchLag || s.copied.others[at] == wanted || !s.namespaceExists(at.namespace)
}

// namespaceExists reports whether a namespace exists or can be created.
func (s *situation) namespaceExists(namespace string) bool {
	return namespace == packagesv1.Namespace || s.exists(namespace)
}

// observeCopies plans the copies on the cluster. Clusters that neither need nor have credentials
// are not watched.
func (v *visit) observeCopies(f *facts, known *knowledge) {
	c := &f.credentials
	wanted := c.wanted()
	if len(wanted) == 0 && !f.hasFinalizer {
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
	there := map[secretKey]present{}
	for _, o := range copies.All() {
		there[secretKey{o.Namespace, o.Name}] = present{stamp: o.Annotations[stampAnnotation], version: o.ResourceVersion}
	}
	c.plan = makePlan(situation{now: f.now, wanted: wanted, there: there, copied: done, exists: func(name string) bool {
		return alive(namespaces.Get("", name))
	}})
}

func alive(o *metav1.PartialObjectMetadata) bool { return o != nil && o.DeletionTimestamp.IsZero() }

func compare(a, b string) int { return strings.Compare(a, b) }
