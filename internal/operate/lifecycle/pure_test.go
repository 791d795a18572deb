package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

func TestNextMachine(t *testing.T) {
	for _, tt := range []struct {
		ready  string
		wanted int
		want   int
	}{
		{"", 3, 1}, {"0/3", 3, 1}, {"2/3", 3, 3}, {"3/3", 3, 4}, {"garbage", 3, 1}, {"", 0, 1}, {"2", 3, 1}, {"-1/3", 3, 0},
	} {
		if got := nextMachine(tt.ready, tt.wanted); got != tt.want {
			t.Errorf("nextMachine(%q, %d) = %d, want %d", tt.ready, tt.wanted, got, tt.want)
		}
	}
}

func TestCountsHaveANoun(t *testing.T) {
	for want, got := range map[string]string{"0 workers": count(0, "worker"), "1 worker": count(1, "worker"), "3 workers": count(3, "worker")} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c := clusterOf(1, map[string]int{"a": 1, "b": 2}).Cluster
	c.Spec.KubernetesVersion = "1.36"
	if got, want := summary(c), "Kubernetes 1.36, 1 control plane machine, 3 workers"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
}

func TestDifferencesOfUnusualValues(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to any
		want     []string
	}{
		"nothing":                   {nil, nil, nil},
		"null is absent":            {map[string]any{"a": nil}, map[string]any{}, nil},
		"an empty object is absent": {map[string]any{"a": map[string]any{}}, map[string]any{}, nil},
		"types":                     {map[string]any{"a": "1"}, map[string]any{"a": true}, []string{"o spec.a: 1 → true"}},
		"an object for a value":     {map[string]any{"a": "x"}, map[string]any{"a": map[string]any{"b": "x"}}, []string{"o spec.a: x → none", "o spec.a.b: none → x"}},
		"items without names":       {[]any{"x", "y"}, []any{"x", "z"}, []string{"o spec[1]: y → z"}},
		"an item with an empty name": {[]any{map[string]any{"name": "", "a": int64(1)}}, []any{map[string]any{"name": "n", "a": int64(1)}}, []string{
			"o spec[0].a: 1 → none", "o spec[n].a: none → 1", "o spec[n].name: none → n",
		}},
		"unicode": {map[string]any{"a": "ü"}, map[string]any{"a": "☃"}, []string{"o spec.a: ü → ☃"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range differences("o", tt.from, tt.to) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"changes o spec.a: none → 1"}, changeLines([]Difference{{Object: "o", Path: "spec.a", To: "1"}})); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestFilesLieInTheDirectoryOfTheCluster(t *testing.T) {
	f := Files{Dir: t.TempDir(), Cluster: "dev"}
	for _, path := range []string{f.Kubeconfig(), f.Spec()} {
		if filepath.Dir(path) != filepath.Join(f.Dir, "dev") {
			t.Errorf("file %q", path)
		}
	}
	if err := f.removeKubeconfig(); err != nil {
		t.Errorf("removing a kubeconfig that does not exist: %v", err)
	}
	if err := f.write(f.Kubeconfig(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Kubeconfig()); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if err := f.removeKubeconfig(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig remains: %v", err)
	}
}

func TestChildGenerationsAreSummed(t *testing.T) {
	c := &spec.Config{
		Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Generation: 100}},
		Docker:  &anywherev1.DockerDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Generation: 2}},
		OIDC:    map[string]*anywherev1.OIDCConfig{"a": {ObjectMeta: metav1.ObjectMeta{Generation: 3}}},
	}
	if got := childGenerations(c); got != 5 {
		t.Errorf("sum %d, want 5", got)
	}
	if got := childGenerations(&spec.Config{Cluster: &anywherev1.Cluster{}}); got != 0 {
		t.Errorf("sum %d without children", got)
	}
}

func TestObservedComparesGenerations(t *testing.T) {
	for _, tt := range []struct {
		generation, observed int64
		want                 bool
	}{
		{1, 1, true}, {2, 1, false}, {1, 2, true}, {0, 0, true},
	} {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Generation: tt.generation}, Status: anywherev1.ClusterStatus{ObservedGeneration: tt.observed}}
		if got := observed(c); got != tt.want {
			t.Errorf("generation %d, observed %d: %t", tt.generation, tt.observed, got)
		}
	}
}

func TestPreflightEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	check := func(context.Context, *phase.Progress) []error {
		ran++
		cancel()
		return []error{errors.New("a problem")}
	}
	second := check
	if err := preflight(ctx, nil, check, second); !errors.Is(err, context.Canceled) || ran != 1 {
		t.Errorf("error %v after %d checks", err, ran)
	}
	if err := preflight(t.Context(), nil); err != nil {
		t.Errorf("error %v without checks", err)
	}
}

func TestSkewErrorReportsThatNothingChanged(t *testing.T) {
	for _, tt := range []struct{ own, plane, want string }{
		{"v1.3.0", "v1.3.5", ""},
		{"v1.4.0", "v1.3.5", ""},
		{"v1.5.0", "v1.3.5", "only the previous minor version is supported"},
		{"v1.3.0", "v1.4.0", "an older drover is not supported"},
		{"v2.0.0", "v1.9.0", "only the previous minor version is supported"},
		{"v1.9.0", "v2.0.0", "an older drover is not supported"},
		{"devel", "v1.0.0", ""},
		{"v1.0.0", "", ""},
	} {
		err := checkSkew(tt.own, tt.plane)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), "(nothing was changed)")) {
			t.Errorf("%s with a plane of %s: error %v, want %q", tt.own, tt.plane, err, tt.want)
		}
	}
}

func TestWorkerTimeoutWithoutLimits(t *testing.T) {
	c := clusterOf(1, map[string]int{"a": 100}).Cluster
	if got := workerTimeout(c, Limits{}); got != 0 {
		t.Errorf("got timeout %s, want none", got)
	}
	if got := workerTimeout(c, Limits{ControlPlane: time.Hour, Machine: time.Hour}); got != 101*time.Hour {
		t.Errorf("timeout %s, want 101h", got)
	}
}

func TestTypeNames(t *testing.T) {
	if got := typeName(&anywherev1.OIDCConfig{}); got != "OIDCConfig" {
		t.Errorf("type %q", got)
	}
}
