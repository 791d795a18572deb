package artifact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// dockerConfig is the part of a config.json that has credentials in it. Helpers are programs, and are not run.
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

// credentials are those for a host and a path on it: the user name and password that are given, or else what the config has for the
// longest part of the path.
func (a *Access) credentials(host, path string) (authn.AuthConfig, error) {
	if a.Username != "" || a.Password != "" {
		return authn.AuthConfig{Username: a.Username, Password: a.Password}, nil
	}
	if len(a.DockerConfig) == 0 {
		return authn.AuthConfig{}, nil
	}
	var config dockerConfig
	if err := json.Unmarshal(a.DockerConfig, &config); err != nil { // The error may quote what it does not understand.
		return authn.AuthConfig{}, fmt.Errorf("%w: the docker config is not JSON of that kind", ErrInvalid)
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

// loginPrefix is what a key of a config stands for, host/ or host/path/. Keys may be URLs, with a version of the API behind them.
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

// hub gives the default registry its one name.
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
		return authn.AuthConfig{}, fmt.Errorf("%w: an entry of the docker config is not a user name and a password", ErrInvalid)
	}
	config.Username, config.Password = username, password
	return config, nil
}
