package build

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/test/kubefake"
)

func TestReleasesComeFromTheModuleFiles(t *testing.T) {
	b := newBuilder(t)
	got, err := b.Releases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Release{{Version: "v1.36.3", ModFile: "go.mod"}, {Version: "v1.35.4", ModFile: "v1.35.mod"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected releases (-want +got):\n%s", diff)
	}
}

func TestReleasesRejectsModuleFileWithoutKubernetes(t *testing.T) {
	b := newBuilder(t)
	kubefake.Write(t, filepath.Join(b.Source, "v1.34.mod"), "module example.com/kube\n")
	_, err := b.Releases(t.Context())
	if err == nil || !strings.Contains(err.Error(), "v1.34.mod\": it does not require k8s.io/kubernetes") {
		t.Errorf("got error %v, want one that names the file and what it lacks", err)
	}
}

func TestSelect(t *testing.T) {
	releases := []Release{{Version: "v1.36.3"}, {Version: "v1.35.4"}}
	tests := []struct {
		name, wanted, want, wantErr string
	}{
		{name: "nothing means the default", wanted: "", want: "v1.36.3"},
		{name: "a version", wanted: "v1.35.4", want: "v1.35.4"},
		{name: "a version without v", wanted: "1.35.4", want: "v1.35.4"},
		{name: "a minor", wanted: "1.35", want: "v1.35.4"},
		{name: "a minor with v", wanted: "v1.36", want: "v1.36.3"},
		{name: "another patch of a known minor", wanted: "v1.35.3", wantErr: `"v1.35.3": choose one of v1.36.3, v1.35.4`},
		{name: "an unknown minor", wanted: "1.3", wantErr: `"1.3": choose one of`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Select(releases, tt.wanted)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || got.Version != tt.want {
				t.Errorf("got %s (%v), want %s", got.Version, err, tt.want)
			}
		})
	}
}
