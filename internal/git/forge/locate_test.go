package forge

import "testing"

func TestLocate(t *testing.T) {
	for name, tt := range map[string]struct {
		at   Location
		want Options
		none bool
	}{
		"GitHub":              {at: Location{URL: "https://github.com/acme/fleet.git"}, want: Options{Kind: GitHub, BaseURL: "https://api.github.com", Repository: "acme/fleet"}},
		"GitHub over SSH":     {at: Location{URL: "git@github.com:acme/fleet.git"}, want: Options{Kind: GitHub, BaseURL: "https://api.github.com", Repository: "acme/fleet"}},
		"GitHub Enterprise":   {at: Location{URL: "https://git.example.com/acme/fleet", Kind: GitHub}, want: Options{Kind: GitHub, BaseURL: "https://git.example.com/api/v3", Repository: "acme/fleet"}},
		"GitLab with groups":  {at: Location{URL: "https://gitlab.com/acme/infra/fleet.git"}, want: Options{Kind: GitLab, BaseURL: "https://gitlab.com/api/v4", Repository: "acme/infra/fleet"}},
		"Gitea with a port":   {at: Location{URL: "https://git.example.com:3000/acme/fleet", Kind: Gitea}, want: Options{Kind: Gitea, BaseURL: "https://git.example.com:3000/api/v1", Repository: "acme/fleet"}},
		"Gitea over SSH":      {at: Location{URL: "ssh://git@git.example.com:2222/acme/fleet.git", Kind: Gitea}, want: Options{Kind: Gitea, BaseURL: "https://git.example.com/api/v1", Repository: "acme/fleet"}},
		"an API elsewhere":    {at: Location{URL: "https://git.example.com/acme/fleet", Kind: GitLab, BaseURL: "https://api.example.com/v4"}, want: Options{Kind: GitLab, BaseURL: "https://api.example.com/v4", Repository: "acme/fleet"}},
		"any other server":    {at: Location{URL: "ssh://git@git.example.com/srv/fleet.git"}, none: true},
		"a host that is like": {at: Location{URL: "https://github.com.example.com/acme/fleet"}, none: true},
	} {
		got, found, err := Locate(tt.at)
		if err != nil || found == tt.none {
			t.Errorf("%s: found %t, error %v", name, found, err)
			continue
		}
		if got.Kind != tt.want.Kind || got.BaseURL != tt.want.BaseURL || got.Repository != tt.want.Repository {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
	if _, _, err := Locate(Location{URL: "https://user:secret@github.com/a/b"}); err == nil {
		t.Error("a URL with a password is accepted")
	}
}
