package bundle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/registry/bundle"
)

func TestNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kubernetes, latest, rest string
		build                    int
	}{
		"v1-36-4":          {"1.36", "v1-36-latest", "", 4},
		"1-21-3":           {"1.21", "v1-21-latest", "", 3},
		"v1-27-126-rc-1":   {"1.27", "v1-27-latest", "rc-1", 126},
		"v1-36-4-":         {"1.36", "v1-36-latest", "", 4},
		"v2-0-00012-alpha": {"2.0", "v2-0-latest", "alpha", 12},
	}
	for text, want := range tests {
		n, err := bundle.ParseName(text)
		must(t, err)
		if n.Kubernetes() != want.kubernetes || n.LatestTag() != want.latest || n.Rest != want.rest || n.Build != want.build || n.String() != text {
			t.Errorf("%q: %+v", text, n)
		}
	}
}

func TestInvalidNamesAreRejected(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "v", "v1", "v1-36", "v1-36-", "vv1-36-1", "v1-36-latest", "v1.36.4", "x1-36-4", "v1-36-4a", "v+1-36-4", "v1--36-4", "v 1-36-4",
		"v1-36-99999999999999999999", "V1-36-4", "v1-36-٣",
	} {
		_, err := bundle.ParseName(text)
		want := "Invalid bundle name (should be in the format vx-xx-xxxx where x is a digit): " + text
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// Names are generated from numbers, which are sorted independently of the package.
func TestNamesAreSortedByNumber(t *testing.T) {
	t.Parallel()
	const many = 5000
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	type sample struct {
		weight int
		name   bundle.Name
	}
	samples := make([]sample, 0, many)
	for range many {
		major, minor, build, rest := random.IntN(3), random.IntN(40), random.IntN(1000), random.IntN(3)
		text := fmt.Sprintf("v%d-%d-%d", major, minor, build)
		if rest > 0 {
			text += fmt.Sprintf("-%c", 'a'+rest)
		}
		n, err := bundle.ParseName(text)
		must(t, err)
		samples = append(samples, sample{((major*100+minor)*10000+build)*10 + rest, n})
	}
	for range 100_000 {
		a, b := samples[random.IntN(many)], samples[random.IntN(many)]
		if got, want := sign(a.name.Compare(b.name)), sign(a.weight-b.weight); got != want {
			t.Fatalf("%s to %s: %d, want %d", a.name, b.name, got, want)
		}
	}
	slices.SortFunc(samples, func(a, b sample) int { return a.name.Compare(b.name) })
	if !slices.IsSortedFunc(samples, func(a, b sample) int { return a.weight - b.weight }) {
		t.Error("they are not sorted")
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestLatestTag(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.36": "v1-36-latest", "v1.9": "v1-9-latest", "1.27+": "v1-27-latest"} {
		if got, err := bundle.LatestTag(version); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", version, got, err, want)
		}
	}
	for _, version := range []string{"", "1", "1.36.3", "1-36", "one.two", "1.36 ", "99999999999999999999.1"} {
		if got, err := bundle.LatestTag(version); err == nil || err.Error() != "please specify kube-version as <major>.<minor>" {
			t.Errorf("%q: %q, %v", version, got, err)
		}
	}
}
