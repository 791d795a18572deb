package admission

import (
	"strings"
	"testing"
	"time"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestRequestsForCertificatesAreChecked(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := &clusterRules{now: func() time.Time { return now }}
	const plane, etcd = anywherev1.RenewControlPlaneAnnotation, anywherev1.RenewEtcdAnnotation
	for name, tt := range map[string]struct {
		was, is  map[string]string
		external bool
		want     string
	}{
		"a time":                 {is: map[string]string{plane: "2026-05-01T12:00:00Z"}},
		"a clock ahead a little": {is: map[string]string{plane: "2026-05-01T12:00:30Z"}},
		"a clock ahead":          {is: map[string]string{plane: "2026-05-01T12:02:00Z"}, want: "is in the future"},
		"no time":                {is: map[string]string{plane: "now"}, want: "must be a time such as"},
		"unchanged":              {was: map[string]string{plane: "now"}, is: map[string]string{plane: "now"}},
		"removed":                {was: map[string]string{plane: "2026-05-01T12:00:00Z"}},
		"external etcd":          {is: map[string]string{etcd: "2026-05-01T12:00:00Z"}, external: true},
		"stacked etcd":           {is: map[string]string{etcd: "2026-05-01T12:00:00Z"}, want: "has no external etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := &anywherev1.Cluster{}, &anywherev1.Cluster{}
			was.Annotations, is.Annotations = tt.was, tt.is
			if tt.external {
				is.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: 1}
			}
			err := r.renewable(was, is)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}
