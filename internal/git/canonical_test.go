package git

import "testing"

func TestSpellingsOfARepositoryHaveOneCanonicalForm(t *testing.T) {
	for name, test := range map[string]struct {
		urls []string
		want string
	}{
		"https": {
			[]string{"https://git.example.com/fleet/specs", "https://Git.Example.COM:443/fleet/specs.git", "https://git.example.com/fleet/specs.git/"},
			"https://git.example.com/fleet/specs",
		},
		"https with a port": {[]string{"https://git.example.com:8443/specs.git"}, "https://git.example.com:8443/specs"},
		"ssh": {
			[]string{"ssh://git.example.com/fleet/specs", "ssh://git@GIT.example.com:22/fleet/specs.git"},
			"ssh://git@git.example.com/fleet/specs",
		},
		"ssh with a user":         {[]string{"ssh://me@git.example.com:2222/specs"}, "ssh://me@git.example.com:2222/specs"},
		"the short form of ssh":   {[]string{"git@git.example.com:fleet/specs.git", "ssh://git.example.com/~/fleet/specs"}, "ssh://git@git.example.com/~/fleet/specs"},
		"the home of another":     {[]string{"ssh://git.example.com/~bob/specs"}, "ssh://git@git.example.com/~/~bob/specs"},
		"an address of this host": {[]string{"http://[::1]:80/specs"}, "http://[::1]/specs"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, url := range test.urls {
				if got, err := Canonical(url); got != test.want || err != nil {
					t.Errorf("Canonical(%q) = %q, %v, want %q", url, got, err, test.want)
				}
			}
		})
	}
}

func TestDifferentRepositoriesHaveDifferentCanonicalForms(t *testing.T) {
	seen := map[string]string{}
	for _, url := range []string{
		"https://git.example.com/fleet/specs", "https://git.example.com/fleet/Specs", "https://git.example.com/fleet/specs/x",
		"https://git.example.com:8443/fleet/specs", "https://git.example.com.evil.example/fleet/specs", "http://127.0.0.1/fleet/specs",
		"ssh://git@git.example.com/fleet/specs", "git@git.example.com:fleet/specs", "ssh://other@git.example.com/fleet/specs",
	} {
		got, err := Canonical(url)
		if other, found := seen[got]; found || err != nil {
			t.Errorf("Canonical(%q) = %q, %v, as for %q", url, got, err, other)
		}
		seen[got] = url
	}
	for _, url := range []string{"", "specs", "ftp://git.example.com/x", "https://me:secret@git.example.com/x", "http://git.example.com/x"} {
		if got, err := Canonical(url); err == nil {
			t.Errorf("Canonical(%q) = %q without an error", url, got)
		}
	}
}
