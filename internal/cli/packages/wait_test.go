package packages

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// packageIn returns a Package in a state, with changes.
func packageIn(name string, state packagesv1.StateEnum, changes ...func(*packagesv1.Package)) packagesv1.Package {
	p := packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	p.Status.State, p.Status.ObservedGeneration = state, 2
	for _, change := range changes {
		change(&p)
	}
	return p
}

func deleted(p *packagesv1.Package)  { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func outdated(p *packagesv1.Package) { p.Generation++ }

func detail(text string) func(*packagesv1.Package) {
	return func(p *packagesv1.Package) { p.Status.Detail = text }
}

func TestStateLine(t *testing.T) {
	for want, p := range map[string]packagesv1.Package{
		"installed":                    packageIn("a", "installed"),
		"installing: no pod is ready":  packageIn("a", "installing", detail("no pod is ready")),
		"waiting for the controller":   packageIn("a", ""),
		"uninstalling":                 packageIn("a", "installed", deleted),
		"uninstalling: no such secret": packageIn("a", "", deleted, detail("no such secret")),
	} {
		if got := stateLine(&p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestIsInstalled(t *testing.T) {
	for name, tc := range map[string]struct {
		pack packagesv1.Package
		want bool
	}{
		"installed":        {packageIn("a", "installed"), true},
		"installing":       {packageIn("a", "installing"), false},
		"not observed yet": {packageIn("a", "installed", outdated), false},
		"being deleted":    {packageIn("a", "installed", deleted), false},
		"no status":        {packagesv1.Package{}, false},
	} {
		if got := isInstalled(&tc.pack); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestPending(t *testing.T) {
	all := []packagesv1.Package{packageIn("a", "installed"), packageIn("b", "installing", detail("no pod is ready")), packageIn("c", "updating")}
	for _, tc := range []struct {
		name string
		goal goal
		want []string
	}{
		{"all packages", goal{reached: isInstalled}, []string{"b is installing: no pod is ready", "c is updating"}},
		{"one that is installed", goal{names: []string{"a"}, reached: isInstalled}, nil},
		{"one that is not", goal{names: []string{"a", "c"}, reached: isInstalled}, []string{"c is updating"}},
		{"one that does not exist", goal{names: []string{"a", "x"}, reached: isInstalled}, []string{"x not found"}},
		{"deletion", goal{names: []string{"a", "x"}, gone: true}, []string{"a is installed"}},
		{"finished deletion", goal{names: []string{"x", "y"}, gone: true}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.goal.pending(all)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPackageTable(t *testing.T) {
	var out bytes.Buffer
	started := packageIn("new", "")
	started.Spec.PackageName = "hello"
	running := packageIn("my", "updating", detail("no pod\nis ready"))
	running.Spec.PackageName, running.Status.CurrentVersion, running.Status.TargetVersion = "hello", "0.1.0", "0.2.0 (latest)"
	running.CreationTimestamp = metav1.Time{Time: time.Now().Add(-90 * time.Minute)}
	if err := packageTable(&out, []packagesv1.Package{started, running}); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"NAME", "PACKAGE", "AGE", "STATE", "CURRENTVERSION", "TARGETVERSION", "DETAIL"},
		{"new", "hello", "-", "-", "-", "-"},
		{"my", "hello", "90m", "updating", "0.1.0", "0.2.0", "(latest)", "no", "pod", "is", "ready"},
	}
	if diff := cmp.Diff(want, words(out.String())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	p := packageIn("my", "updating", detail("no pod is ready"))
	p.Namespace, p.Spec.PackageName = "eksa-packages-dev", "hello"
	d := &described{Package: p}
	for _, step := range []struct {
		name   string
		change func()
		want   []string
		absent []string
	}{
		{
			"new", func() {},
			[]string{"Name: eksa-packages-dev/my", "Package: hello", "State: updating: no pod is ready", "Version: none, target unknown", "Conditions: STATUS REASON SINCE MESSAGE"},
			[]string{"Target:", "Source:", "Upgrade:", "Events:"},
		},
		{
			"installed", func() {
				s := &d.Package.Status
				s.CurrentVersion, s.TargetVersion = "0.1.0", "0.2.0 (latest)"
				s.Target = &packagesv1.PackageTarget{Cluster: "dev", ClusterNamespace: "fleet", Release: "my", Namespace: "x"}
				s.Source = packagesv1.PackageOCISource{Repository: "charts/hello", Digest: "sha256:1"}
				s.UpgradesAvailable = []packagesv1.PackageAvailableUpgrade{{Version: "0.3.0", Tag: "v1-36-3"}}
				s.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Installing", Message: "no pod is ready"}}
				d.Events = []corev1.Event{{Type: "Normal", Reason: "PackageInstalled", Message: "Installed version 0.1.0"}}
			},
			[]string{
				"Version: 0.1.0, target 0.2.0 (latest)", "Target: release my in namespace x of cluster fleet/dev", "Source: charts/hello@sha256:1",
				"Upgrade: 0.3.0 in bundle v1-36-3", "Ready False Installing - no pod is ready", "Events: REASON AGE MESSAGE",
				"Normal PackageInstalled - Installed version 0.1.0",
			},
			nil,
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			var out bytes.Buffer
			if err := d.print(&out); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, line := range words(out.String()) {
				text.WriteString(strings.Join(line, " ") + "\n")
			}
			for _, want := range step.want {
				if !strings.Contains("\n"+text.String(), "\n"+want+"\n") {
					t.Errorf("line %q is missing in\n%s", want, text.String())
				}
			}
			for _, absent := range step.absent {
				if strings.Contains(text.String(), absent) {
					t.Errorf("%q is in\n%s", absent, text.String())
				}
			}
		})
	}
}
