package version

import "testing"

func TestOlder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"the same release", "v1.2.0", "v1.2.0", false},
		{"an earlier patch", "v1.2.0", "v1.2.1", true},
		{"a later patch", "v1.2.1", "v1.2.0", false},
		{"minors compare as numbers", "v1.9.0", "v1.10.0", true},
		{"a candidate precedes its release", "v1.2.0-rc.1", "v1.2.0", true},
		{"a development build precedes its candidate", "v1.2.0-dev.90", "v1.2.0-rc.1", true},
		{"a development build precedes its release", "v1.2.0-dev.90+g1a2b3c4", "v1.2.0", true},
		{"a development build follows the release before", "v1.2.0-dev.0+g1a2b3c4", "v1.1.9", false},
		{"commits compare as numbers", "v1.2.0-dev.9+gaaaaaaa", "v1.2.0-dev.10+gbbbbbbb", true},
		{"a later commit", "v1.2.0-dev.10+gaaaaaaa", "v1.2.0-dev.9+gbbbbbbb", false},
		{"two branches with as many commits", "v1.2.0-dev.9+gaaaaaaa", "v1.2.0-dev.9+gbbbbbbb", false},
		{"a changed tree and its commit", "v1.2.0-dev.9+gaaaaaaa", "v1.2.0-dev.9+gaaaaaaa.dirty.1b2c3d4e", false},
		{"an unnumbered build and a numbered one", "v1.2.0-dev", "v1.2.0-dev.9+gaaaaaaa", false},
		{"a numbered build and an unnumbered one", "v1.2.0-dev.9+gaaaaaaa", "v1.2.0-dev", false},
		{"an unnumbered build of an earlier release", "v1.1.0-dev", "v1.2.0-dev.9+gaaaaaaa", true},
		{"an unnumbered build and its release", "v1.2.0-dev", "v1.2.0", true},
		{"no version on the left", "", "v1.2.0", false},
		{"no version on the right", "v1.2.0", "latest", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Older(tt.a, tt.b); got != tt.want {
				t.Errorf("Older(%q, %q) = %t", tt.a, tt.b, got)
			}
		})
	}
}

func TestSameBuild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"one release", "v1.2.0", "v1.2.0", true},
		{"one commit", "v1.2.0-dev.9+gaaaaaaa", "v1.2.0-dev.9+gaaaaaaa", true},
		{"one changed tree", "v1.2.0-dev.9+gaaaaaaa.dirty.1b2c3d4e", "v1.2.0-dev.9+gaaaaaaa.dirty.1b2c3d4e", true},
		{"two changed trees", "v1.2.0-dev.9+gaaaaaaa.dirty.1b2c3d4e", "v1.2.0-dev.9+gaaaaaaa.dirty.5f6a7b8c", false},
		{"two commits with one number", "v1.2.0-dev.9+gaaaaaaa", "v1.2.0-dev.9+gbbbbbbb", false},
		{"unnumbered builds could be any", "v1.2.0-dev", "v1.2.0-dev", false},
		{"no version", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := SameBuild(tt.a, tt.b); got != tt.want {
				t.Errorf("SameBuild(%q, %q) = %t", tt.a, tt.b, got)
			}
		})
	}
}

func TestVersionKinds(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]struct{ released, development bool }{
		"v1.2.0":                 {released: true},
		"v1.2.0-rc.1":            {},
		"v1.2.0-dev":             {development: true},
		"v1.2.0-dev.9+gaaaaaaa":  {development: true},
		"v1.2.0-device.1":        {},
		"v1.2.0+build.of.vendor": {released: true},
		"latest":                 {},
		"":                       {},
	} {
		if got := Released(v); got != want.released {
			t.Errorf("Released(%q) = %t", v, got)
		}
		if got := Development(v); got != want.development {
			t.Errorf("Development(%q) = %t", v, got)
		}
	}
}
