// Package mirror knows registry mirrors: what users say about one, the Secret that is made of it, and which hosts that Secret opens. A mirror's
// credentials, its CA and that its certificate is not looked at are for its own endpoint and for nobody else.
//
// It reads and writes no objects. Start with Parse, or with Serves for a Secret that was made.
package mirror

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// Names of Secrets that users and charts know.
const (
	// Secret is what a user says about a registry mirror, in the namespace of a cluster's packages or in the one for all.
	Secret = "registry-mirror-secret"
	// Credentials is made of it, for HelmReleaseProxies here and for pods on clusters.
	Credentials = "registry-mirror-cred"
)

// Keys of Credentials besides those that all Secrets for registries have.
const (
	// InsecureKey is true if the mirror's certificate is not to be checked.
	InsecureKey = "insecure"
	// EndpointKey is the host of the mirror.
	EndpointKey = "endpoint"
)

// Mirror is a registry mirror, and how it is opened.
type Mirror struct {
	// Host has the port, if one is said.
	Host string
	// Config is a docker config. It may have nobody in it.
	Config   []byte
	CA       []byte
	Insecure bool

	login bool
}

// Parse reads what a user said. Errors never repeat it. A mirror without an address is the registry itself.
func Parse(data map[string][]byte, registry string) (*Mirror, error) {
	value := func(key string) string { return strings.TrimSpace(string(data[key])) }
	m := &Mirror{}
	endpoint := value("ENDPOINT")
	if _, rest, found := strings.Cut(endpoint, "://"); found {
		endpoint = rest
	}
	m.Host, _, _ = strings.Cut(strings.Trim(endpoint, "/"), "/")
	if m.Host == "" {
		m.Host = registry
	}
	if m.Host == "" {
		return nil, errors.New("ENDPOINT is empty")
	}
	var err error
	if text := value("INSECURE"); text != "" {
		if m.Insecure, err = strconv.ParseBool(strings.ToLower(text)); err != nil {
			return nil, errors.New("INSECURE is neither true nor false")
		}
	}
	if m.CA, err = certificates(value("CACERTCONTENT")); err != nil {
		return nil, err
	}
	username, password := value("USERNAME"), strings.TrimRight(string(data["PASSWORD"]), "\r\n")
	m.login = username != "" || password != ""
	m.Config, err = dockerConfig(m.Host, username, password)
	return m, err
}

// certificates takes them as they are, or once more encoded.
func certificates(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	content := []byte(text)
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		content = decoded
	}
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("CACERTCONTENT has no certificate in it")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			return append(bytes.TrimSpace(content), '\n'), nil
		}
	}
}

// dockerConfig has what opens the host, also under the name that images have if the port is the usual one.
func dockerConfig(host, username, password string) ([]byte, error) {
	auths := map[string]map[string]string{}
	if username != "" || password != "" {
		login := map[string]string{
			"username": username, "password": password, "auth": base64.StdEncoding.EncodeToString([]byte(username + ":" + password)),
		}
		auths[host] = login
		if short, found := strings.CutSuffix(host, ":443"); found {
			auths[short] = login
		}
	}
	config, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		return nil, fmt.Errorf("writing a docker config: %w", err)
	}
	return config, nil
}

// Data is what Credentials has on the management plane.
func (m *Mirror) Data() map[string][]byte {
	out := map[string][]byte{
		corev1.DockerConfigJsonKey: m.Config, addonsv1.DefaultCredentialsKey: m.Config, InsecureKey: []byte(strconv.FormatBool(m.Insecure)),
		EndpointKey: []byte(m.Host),
	}
	if len(m.CA) > 0 {
		out[addonsv1.CAKey] = m.CA
	}
	return out
}

// Access opens the mirror and nothing else.
func (m *Mirror) Access() map[string]artifact.Access {
	access := artifact.Access{CA: m.CA, SkipTLSVerify: m.Insecure}
	if m.login {
		access.DockerConfig = m.Config
	}
	return map[string]artifact.Access{m.Host: access}
}

// Serves says that the data of Credentials is for a host. Where a user has made the Secret, and no endpoint is said, those are its hosts that
// its docker config names.
func Serves(data map[string][]byte, host string) bool {
	if host == "" {
		return false
	}
	if endpoint := strings.TrimSpace(string(data[EndpointKey])); endpoint != "" {
		return usual(endpoint) == usual(host)
	}
	for _, key := range []string{addonsv1.DefaultCredentialsKey, corev1.DockerConfigJsonKey} {
		var config struct {
			Auths map[string]json.RawMessage `json:"auths"`
		}
		if json.Unmarshal(data[key], &config) != nil {
			continue
		}
		for name := range config.Auths {
			if usual(name) == usual(host) {
				return true
			}
		}
	}
	return false
}

// usual is the host of an address, without the port that everybody uses.
func usual(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	host, _, _ := strings.Cut(address, "/")
	return strings.TrimSuffix(strings.ToLower(host), ":443")
}
