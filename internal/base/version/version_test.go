package version

import (
	"encoding/json"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrom(t *testing.T) {
	bare := strings.TrimSpace(next) + "-dev"
	module := func(path, version string) *debug.Module { return &debug.Module{Path: path, Version: version} }
	tests := []struct {
		name   string
		linked Info
		build  *debug.BuildInfo
		want   Info
	}{
		{
			name: "without any record it is an unnumbered development build",
			want: Info{Version: bare},
		},
		{
			name:   "what the linker set wins over what the compiler recorded",
			linked: Info{Version: "v1.2.3", Commit: "aaaa", Date: "2026-01-02T03:04:05Z"},
			build: &debug.BuildInfo{Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "bbbb"}, {Key: "vcs.time", Value: "2020-01-01T00:00:00Z"},
			}},
			want: Info{Version: "v1.2.3", Commit: "aaaa", Date: "2026-01-02T03:04:05Z"},
		},
		{
			name: "commit, date and module versions come from the compiler's record",
			build: &debug.BuildInfo{
				Deps: []*debug.Module{module("example.com/other", "v9.9.9"), module("sigs.k8s.io/cluster-api", "v1.14.2")},
				Settings: []debug.BuildSetting{
					{Key: "vcs.revision", Value: "bbbb"}, {Key: "vcs.time", Value: "2020-01-01T00:00:00Z"},
				},
			},
			want: Info{Version: bare, Commit: "bbbb", Date: "2020-01-01T00:00:00Z", ClusterAPI: "v1.14.2"},
		},
		{
			name: "a replaced module counts with the version that replaces it",
			build: &debug.BuildInfo{Deps: []*debug.Module{{
				Path: "sigs.k8s.io/cluster-api", Version: "v1.14.2", Replace: module("example.com/fork", "v1.14.3"),
			}}},
			want: Info{Version: bare, ClusterAPI: "v1.14.3"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Go, tt.want.Kubernetes = runtime.Version(), Kubernetes
			if diff := cmp.Diff(tt.want, from(tt.linked, tt.build)); diff != "" {
				t.Errorf("unexpected info (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionFileNamesARelease(t *testing.T) {
	if v := strings.TrimSpace(next); !Released(v) {
		t.Errorf("VERSION holds %q, want the version of the next release", v)
	}
}

func TestKubernetesVersionMatchesModuleFile(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json", "../../../kube/kubernetes/go.mod").Output()
	if err != nil {
		t.Fatalf("reading the module file: %v", err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatalf("parsing the module file: %v", err)
	}
	for _, r := range file.Require {
		if r.Path == "k8s.io/kubernetes" {
			if r.Version != Kubernetes {
				t.Errorf("kube/kubernetes/go.mod pins %s, version.Kubernetes is %s", r.Version, Kubernetes)
			}
			return
		}
	}
	t.Error("kube/kubernetes/go.mod does not require k8s.io/kubernetes")
}
