package bundle

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1024.0 KiB", 1 << 20: "1.0 MiB", 5 << 30: "5120.0 MiB",
	} {
		if got := size(bytes); got != want {
			t.Errorf("size(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestStep(t *testing.T) {
	for _, tc := range []struct{ from, to, want string }{
		{"", "", ""}, {"", "2", " 2"}, {"1", "", " 1"}, {"1", "1", " 1"}, {"1", "2", " 1 → 2"},
	} {
		if got := step(tc.from, tc.to); got != tc.want {
			t.Errorf("step(%q, %q) = %q, want %q", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestShort(t *testing.T) {
	long := "sha256:" + strings.Repeat("ab", 32)
	for want, digests := range map[string][]string{
		"": nil, "sha256:1": {"sha256:1"}, "sha256:abababababab": {long}, "sha256:abababababab, x": {long, "x"},
	} {
		if got := short(digests); got != want {
			t.Errorf("short(%q) = %q, want %q", digests, got, want)
		}
	}
}

func TestDifferenceText(t *testing.T) {
	for _, tc := range []struct {
		name       string
		difference bundle.Difference
		want       string
	}{
		{"none", bundle.Difference{From: "v1-36-1", To: "v1-36-2"}, "v1-36-1 → v1-36-2\n  No differences.\n"},
		{
			"added and removed", bundle.Difference{From: "a", To: "b", Packages: []bundle.PackageDifference{
				{Name: "new", Change: bundle.Added, To: "1.0.0", Versions: []bundle.VersionDifference{{Name: "1.0.0", Change: bundle.Added, To: "sha256:1"}}},
				{Name: "old", Change: bundle.Removed, From: "0.1.0"},
			}}, "a → b\n+ new 1.0.0\n    + version 1.0.0\n- old 0.1.0\n",
		},
		{
			"changed", bundle.Difference{From: "a", To: "b", Packages: []bundle.PackageDifference{{
				Name: "hello", Change: bundle.Changed, From: "1.0.0", To: "1.0.0", Settings: []string{"workloadonly"},
				Versions: []bundle.VersionDifference{
					{Name: "1.0.0", Change: bundle.Changed, From: "sha256:1", To: "sha256:2", Settings: []string{"schema"}},
					{Name: "0.9.0", Change: bundle.Changed, From: "sha256:3", To: "sha256:3", Settings: []string{"schema", "dependencies"}},
				},
				Images: []bundle.ImageDifference{{Repository: "images/hello", Change: bundle.Changed, From: []string{"sha256:4"}, To: []string{"sha256:5", "sha256:6"}}},
			}}}, `a → b
~ hello 1.0.0
    ~ workloadonly
    ~ version 1.0.0: chart sha256:1 → sha256:2, schema
    ~ version 0.9.0: schema, dependencies
    ~ image images/hello sha256:4 → sha256:5, sha256:6
`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := differenceText(&out, tc.difference); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCopiedText(t *testing.T) {
	for _, tc := range []struct {
		name   string
		copied transfer.Copied
		want   string
	}{
		{
			"registry",
			transfer.Copied{To: "oci://r.example.com", Items: make([]transfer.Sent, 3), Tags: []string{"v1-36-1", "v1-36-latest"}, Bytes: 2048, SentBytes: 1024},
			"Sent 1.0 KiB of 2.0 KiB to oci://r.example.com (3 artifacts).\noci://r.example.com/bundles:v1-36-1\noci://r.example.com/bundles:v1-36-latest\n",
		},
		{
			"registry with a newer bundle",
			transfer.Copied{To: "oci://r.example.com", Tags: []string{"v1-36-1"}, Latest: "v1-36-7"},
			"Sent 0 B of 0 B to oci://r.example.com (0 artifacts).\nv1-36-7 is newer and remains the latest bundle.\noci://r.example.com/bundles:v1-36-1\n",
		},
		{"archive", transfer.Copied{To: "site.tar", Tags: []string{"v1-36-1"}, Items: make([]transfer.Sent, 1)}, "Sent 0 B of 0 B to site.tar (1 artifacts).\n"},
		{"dry run", transfer.Copied{To: "site.tar", DryRun: true, SentBytes: 10, Bytes: 10}, "Would send 10 B of 10 B to site.tar (0 artifacts).\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := copiedText(&out, &tc.copied, "bundles"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPrintProgress(t *testing.T) {
	var errs bytes.Buffer
	report := printProgress(&ui.IO{Err: &errs})
	report(transfer.Sent{Kind: "chart", Reference: "charts/hello:1.0.0", Bytes: 2048, SentBytes: 2048})
	report(transfer.Sent{Kind: "bundle", Reference: "bundles:v1-36-1", Bytes: 10})
	want := "chart   charts/hello:1.0.0: sent 2.0 KiB\nbundle  bundles:v1-36-1: already exists\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSuggestCharts(t *testing.T) {
	missing := &transfer.MissingError{Source: "out", What: []string{"chart charts/hello:1.0.0"}}
	if err := suggestCharts(missing); !errors.Is(err, missing) || !strings.Contains(err.Error(), "\nPass --charts") {
		t.Errorf("got %v", err)
	}
	other := errors.New("connection refused")
	if err := suggestCharts(other); err.Error() != other.Error() {
		t.Errorf("got %v", err)
	}
}

func TestBuiltReport(t *testing.T) {
	b := &packagesv1.PackageBundle{Spec: packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{
		{Name: "hello", Source: packagesv1.BundlePackageSource{Repository: "charts/hello", Versions: []packagesv1.SourceVersion{
			{Name: "1.1.0", Digest: "sha256:2", Schema: "x", Images: make([]packagesv1.VersionImages, 2)}, {Name: "1.0.0", Digest: "sha256:1"},
		}}},
		{Name: "base", Source: packagesv1.BundlePackageSource{Repository: "team/base", Versions: []packagesv1.SourceVersion{{Name: "0.3.0", Digest: "sha256:3"}}}},
	}}}
	b.Name = "v1-36-1"
	report := newBuiltReport(&pack.Built{Bundle: b}, "v1-36-1.yaml", []string{"out/hello-1.1.0.tgz", "out/hello-1.0.0.tgz", "out/base-0.3.0.tgz"})
	want := builtReport{Bundle: "v1-36-1", File: "v1-36-1.yaml", Packages: []builtPackage{
		{Name: "hello", Version: "1.1.0", Repository: "charts/hello", Digest: "sha256:2", Archive: "out/hello-1.1.0.tgz", Images: 2, Schema: true},
		{Name: "hello", Version: "1.0.0", Repository: "charts/hello", Digest: "sha256:1", Archive: "out/hello-1.0.0.tgz"},
		{Name: "base", Version: "0.3.0", Repository: "team/base", Digest: "sha256:3", Archive: "out/base-0.3.0.tgz"},
	}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var out bytes.Buffer
	if err := report.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"PACKAGE VERSION REPOSITORY SCHEMA IMAGES DIGEST", "hello 1.1.0 charts/hello yes 2 sha256:2", "base 0.3.0 team/base no 0 sha256:3",
		"Wrote v1-36-1.yaml. Next: drover bundle sign v1-36-1.yaml --key FILE",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), line) {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
}
