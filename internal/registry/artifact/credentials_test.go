package artifact

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
)

func TestCredentials(t *testing.T) {
	config := []byte(`{"auths": {
		"example.com": {"username": "host", "password": "1"},
		"https://example.com/team/": {"auth": "dGVhbTp3aXRoOmNvbG9u"},
		"example.com:5000": {"identitytoken": "refresh"},
		"https://` + authn.DefaultAuthKey[len("https://"):] + `": {"username": "hub", "password": "2"},
		"broken.example.com": {"auth": "dGVhbQ=="}
	}}`)
	for _, c := range []struct {
		name, host, path string
		access           Access
		want             authn.AuthConfig
		fails            error
	}{
		{name: "nothing", host: "example.com"},
		{
			name: "user name and password go first", host: "example.com", access: Access{Username: "me", Password: "mine", DockerConfig: config},
			want: authn.AuthConfig{Username: "me", Password: "mine"},
		},
		{
			name: "by host", host: "example.com", path: "/other", access: Access{DockerConfig: config},
			want: authn.AuthConfig{Username: "host", Password: "1"},
		},
		{
			name: "by the longest path, in base64", host: "example.com", path: "/team/charts", access: Access{DockerConfig: config},
			want: authn.AuthConfig{Username: "team", Password: "with:colon"},
		},
		{
			name: "a path is more than a prefix", host: "example.com", path: "/teams", access: Access{DockerConfig: config},
			want: authn.AuthConfig{Username: "host", Password: "1"},
		},
		{
			name: "another port", host: "example.com:5000", access: Access{DockerConfig: config},
			want: authn.AuthConfig{IdentityToken: "refresh"},
		},
		{
			name: "the default registry by its short name", host: "docker.io", path: "library/x", access: Access{DockerConfig: config},
			want: authn.AuthConfig{Username: "hub", Password: "2"},
		},
		{name: "another host that ends the same", host: "not-example.com", access: Access{DockerConfig: config}},
		{name: "an entry that can't be read", host: "broken.example.com", access: Access{DockerConfig: config}, fails: ErrInvalid},
		{name: "a config that can't be read", host: "example.com", access: Access{DockerConfig: []byte("secret")}, fails: ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.access.credentials(c.host, c.path)
			if !errors.Is(err, c.fails) {
				t.Errorf("error %v, want %v", err, c.fails)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
