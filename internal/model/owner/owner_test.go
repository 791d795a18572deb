package owner

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func cluster(uid, mark string) *anywherev1.Cluster {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dev", UID: types.UID(uid), CreationTimestamp: metav1.NewTime(noon)}}
	if mark != "" {
		c.Annotations = map[string]string{anywherev1.ClusterUIDAnnotation: mark}
	}
	return c
}

func object(mark string, labels map[string]string, age time.Duration) *metav1.ObjectMeta {
	o := &metav1.ObjectMeta{Labels: labels, CreationTimestamp: metav1.NewTime(noon.Add(-age))}
	if mark != "" {
		o.Annotations = map[string]string{anywherev1.ClusterUIDAnnotation: mark}
	}
	return o
}

func TestOwnershipIsByUID(t *testing.T) {
	own := Labels(cluster("", ""))
	other := Labels(&metav1.ObjectMeta{Namespace: "others", Name: "dev"})
	for _, tc := range []struct {
		name    string
		cluster *anywherev1.Cluster
		object  *metav1.ObjectMeta
		want    bool
	}{
		{"marked", cluster("a", ""), object("a", own, 0), true},
		{"marked, of a Cluster that says so itself", cluster("a", "a"), object("a", own, 0), true},
		{"of a deleted Cluster of the name", cluster("b", ""), object("a", own, 0), false},
		{"of a deleted Cluster, marked again", cluster("b", "b"), object("a", own, 0), false},
		{"moved with the Cluster", cluster("b", "a"), object("a", own, time.Hour), true},
		{"unmarked and younger", cluster("a", ""), object("", own, -time.Minute), true},
		{"unmarked and of the same second", cluster("a", ""), object("", own, 0), true},
		{"unmarked and older", cluster("a", ""), object("", own, time.Second), false},
		{"unmarked, older and moved", cluster("b", "a"), object("", own, time.Second), true},
		{"unmarked, of another namespace", cluster("a", ""), object("", other, 0), false},
		{"unmarked, of another namespace, moved", cluster("b", "a"), object("", other, 0), false},
		{"of nobody", cluster("a", ""), object("", nil, 0), false},
	} {
		if got := Owns(tc.cluster, tc.object); got != tc.want {
			t.Errorf("%s: got %t, want %t", tc.name, got, tc.want)
		}
	}
}

func TestSharedOwner(t *testing.T) {
	own := Labels(cluster("", ""))
	root := object("a", own, 0)
	for _, tc := range []struct {
		name   string
		object *metav1.ObjectMeta
		want   bool
	}{
		{"marked", object("a", own, 0), true},
		{"marked by an administrator, without labels", object("a", nil, time.Hour), true},
		{"of a deleted Cluster of the name", object("b", own, 0), false},
		{"unmarked and younger", object("", own, -time.Minute), true},
		{"unmarked and older", object("", own, time.Minute), false},
		{"of nobody", object("", nil, 0), false},
	} {
		if got := Shares(root, tc.object); got != tc.want {
			t.Errorf("%s: got %t, want %t", tc.name, got, tc.want)
		}
	}
}

func TestRecordedUIDIdentifiesTheCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cluster *anywherev1.Cluster
		uid     string
		want    bool
	}{
		{"its mark", cluster("b", "a"), "a", true},
		{"its own UID, recorded before it was marked", cluster("b", "a"), "b", true},
		{"its own UID, unmarked", cluster("b", ""), "b", true},
		{"that of a deleted Cluster", cluster("b", "a"), "c", false},
		{"none", cluster("b", ""), "", false},
	} {
		if got := Identifies(tc.cluster, tc.uid); got != tc.want {
			t.Errorf("%s: got %t, want %t", tc.name, got, tc.want)
		}
	}
}

func TestUsersAreThoseOfTheNamespaceOfTheCluster(t *testing.T) {
	management := object("a", Labels(cluster("", "")), 0)
	management.Annotations[anywherev1.AdministeredAnnotation] = "true"
	for want, o := range map[string]*metav1.ObjectMeta{
		"team": object("a", Labels(cluster("", "")), 0),
		"":     object("a", Labels(&metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "dev"}), 0),
	} {
		if got := Users(o); got != want {
			t.Errorf("users are those of %q, want %q", got, want)
		}
	}
	if got := Users(management); got != "" {
		t.Errorf("a management cluster belongs to %q", got)
	}
}

func TestMarkReplacesAFormerMark(t *testing.T) {
	o := object("former", nil, 0)
	o.Annotations["other"] = "kept"
	Mark(cluster("a", ""), o)
	if o.Annotations[anywherev1.ClusterUIDAnnotation] != "a" || o.Annotations["other"] != "kept" {
		t.Errorf("annotations are %v", o.Annotations)
	}
}

func TestCopiedMarkMeansTheSameCluster(t *testing.T) {
	from, to := object("a", Labels(cluster("", "")), 0), object("", nil, time.Hour)
	from.Labels["other"] = "not copied"
	Copy(from, to)
	if !Shares(from, to) || len(to.Labels) != 2 || len(to.Annotations) != 1 {
		t.Errorf("labels are %v, annotations %v", to.Labels, to.Annotations)
	}
	bare := &metav1.ObjectMeta{}
	Copy(&metav1.ObjectMeta{}, bare)
	if bare.Labels != nil || bare.Annotations != nil {
		t.Errorf("got %+v, want no labels or annotations", bare)
	}
}
