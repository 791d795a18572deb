package active

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"

	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
)

func bytesOf(in map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range in {
		out[key] = []byte(value)
	}
	return out
}

func TestMakePlan(t *testing.T) {
	web, shop, cloud := secretKey{"web", mirror.Credentials}, secretKey{"shop", mirror.Credentials}, secretKey{"eksa-packages", CloudSecret}
	wrote := func(version string, age time.Duration) copied {
		return copied{written: map[secretKey]writtenCopy{web: {stamp: "1", version: version, at: noon.Add(-age)}}}
	}
	for name, test := range map[string]struct {
		wanted map[secretKey]string
		there  map[secretKey]present
		copied copied
		want   plan
	}{
		"nothing":             {},
		"new":                 {wanted: map[secretKey]string{web: "1"}, want: plan{write: []secretKey{web}}},
		"without a namespace": {wanted: map[secretKey]string{shop: "1"}},
		"in a namespace that is created on demand": {wanted: map[secretKey]string{cloud: "1"}, want: plan{write: []secretKey{cloud}}},
		"up to date": {
			wanted: map[secretKey]string{web: "1"}, there: map[secretKey]present{web: {"1", "10"}}, copied: wrote("10", time.Hour),
		},
		"written, but not observed yet": {wanted: map[secretKey]string{web: "1"}, copied: wrote("10", time.Second)},
		"written long ago and deleted":  {wanted: map[secretKey]string{web: "1"}, copied: wrote("10", time.Hour), want: plan{write: []secretKey{web}}},
		"rewritten, but the old version is observed": {
			wanted: map[secretKey]string{web: "1"}, there: map[secretKey]present{web: {"1", "9"}}, copied: wrote("10", time.Second),
		},
		"changed by another client": {
			wanted: map[secretKey]string{web: "1"}, there: map[secretKey]present{web: {"1", "11"}}, copied: wrote("10", time.Hour), want: plan{write: []secretKey{web}},
		},
		"written before a restart": {wanted: map[secretKey]string{web: "1"}, there: map[secretKey]present{web: {"1", "10"}}, want: plan{write: []secretKey{web}}},
		"rotated": {
			wanted: map[secretKey]string{web: "2"}, there: map[secretKey]present{web: {"1", "10"}}, copied: wrote("10", time.Hour), want: plan{write: []secretKey{web}},
		},
		"no longer needed": {there: map[secretKey]present{shop: {"1", "3"}, web: {"1", "2"}}, want: plan{remove: []secretKey{shop, web}}},
		"foreign":          {wanted: map[secretKey]string{web: "1"}, copied: copied{others: map[secretKey]string{web: "1"}}},
		"foreign, after a rotation": {
			wanted: map[secretKey]string{web: "2"}, copied: copied{others: map[secretKey]string{web: "1"}}, want: plan{write: []secretKey{web}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := makePlan(situation{now: noon, wanted: test.wanted, there: test.there, copied: test.copied, exists: func(n string) bool { return n == "web" }})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(plan{}, secretKey{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMinorVersionOfServers(t *testing.T) {
	for want, info := range map[string]version.Info{
		"1.36": {Major: "1", Minor: "36"}, "1.27": {Major: "1", Minor: "27+"}, "1.35": {GitVersion: "v1.35.2-some+build"},
	} {
		if got := minor(&info); got != want {
			t.Errorf("minor(%+v) = %q, want %q", info, got, want)
		}
	}
}
