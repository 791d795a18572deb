package artifact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// dockerConfig is the part of a config.json with credentials. Credential helpers are not supported.
type dockerConfig struct {
	Auths map[string]dockerLogin `json:"auths"`
}

type dockerLogin struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// credentials returns the credentials for a host and a path: the user name and password, or the
// entry of the Docker config with the longest matching prefix.
func (a *Access) credentials(host, path string) (authn.AuthConfig, error) {
	if a.Username != "" || a.Password != "" {
		return authn.AuthConfig{Username: a.Username, Password: a.Password}, nil
	}
	if len(a.DockerConfig) == 0 {
		return authn.AuthConfig{}, nil
	}
	var config dockerConfig
	if err := json.Unmarshal(a.DockerConfig, &config); err != nil { // the error may contain credentials
		return authn.AuthConfig{}, fmt.Errorf("%w: the Docker config is invalid", ErrInvalid)
	}
	where := hub(host) + "/" + strings.Trim(path, "/") + "/"
	best, login := "", dockerLogin{}
	for key, candidate := range config.Auths {
		prefix := loginPrefix(key)
		if strings.HasPrefix(where, prefix) && len(prefix) > len(best) {
			best, login = prefix, candidate
		}
	}
	return login.config()
}

// loginPrefix returns the prefix host/ or host/path/ of a key. Keys may be URLs that end with the
// version of the API.
func loginPrefix(key string) string {
	if _, rest, found := strings.Cut(key, "://"); found {
		key = rest
	}
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	host, path, found := strings.Cut(key, "/")
	if !found {
		return hub(host) + "/"
	}
	return hub(host) + "/" + path + "/"
}

// hub returns the canonical name of a host. The default registry has several names.
func hub(host string) string {
	registry, err := name.NewRegistry(host)
	if err != nil {
		return host
	}
	return registry.RegistryStr()
}

func (l dockerLogin) config() (authn.AuthConfig, error) {
	config := authn.AuthConfig{
		Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
	}
	if l.Auth == "" {
		return config, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(l.Auth)
	username, password, found := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	if err != nil || !found {
		return authn.AuthConfig{}, fmt.Errorf("%w: an entry of the Docker config is not a user name and a password", ErrInvalid)
	}
	config.Username, config.Password = username, password
	return config, nil
}
