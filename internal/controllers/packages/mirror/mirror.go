// Package mirror parses the Secret in which users configure a registry mirror, and converts it to
// the Secret that add-ons and pods use. Credentials, the CA and InsecureKey apply only to the
// endpoint of the mirror.
//
// It reads and writes no objects. Start with Parse, or with Serves for the converted Secret.
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
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// Names of Secrets that users and charts refer to.
const (
	// Secret configures a registry mirror for one cluster, or for all clusters, depending on its
	// namespace.
	Secret = "registry-mirror-secret"
	// Credentials is created from Secret, for HelmReleaseProxies and for pods on clusters.
	Credentials = packagesv1.MirrorCredentials
)

// Keys of Credentials besides those of all Secrets for registries.
const (
	// InsecureKey is true to skip the verification of the certificate.
	InsecureKey = "insecure"
	// EndpointKey is the host of the mirror.
	EndpointKey = "endpoint"
)

// Mirror is a registry mirror with its credentials.
type Mirror struct {
	// Host includes the port, if one is set.
	Host string
	// Config is a Docker config, which may be empty.
	Config   []byte
	CA       []byte
	Insecure bool

	login bool
}

// Parse parses the data of Secret. The endpoint defaults to the registry. Errors never contain
// values.
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
			return nil, errors.New("INSECURE must be true or false")
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

// certificates parses PEM, which may be encoded in base64.
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
			return nil, errors.New("CACERTCONTENT contains no certificate")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			return append(bytes.TrimSpace(content), '\n'), nil
		}
	}
}

// dockerConfig returns a Docker config for a host. For port 443, it also contains the host without
// the port, which is how images refer to it.
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
		return nil, fmt.Errorf("encoding a Docker config: %w", err)
	}
	return config, nil
}

// Data returns the data of Credentials on the management plane.
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

// Access returns the credentials by host. The mirror is the only host.
func (m *Mirror) Access() map[string]artifact.Access {
	access := artifact.Access{CA: m.CA, SkipTLSVerify: m.Insecure}
	if m.login {
		access.DockerConfig = m.Config
	}
	return map[string]artifact.Access{m.Host: access}
}

// Serves reports whether the data of Credentials applies to a host. Without an endpoint, as in a
// Secret created by a user, it applies to the hosts of the Docker config.
func Serves(data map[string][]byte, host string) bool {
	if host == "" {
		return false
	}
	if endpoint := strings.TrimSpace(string(data[EndpointKey])); endpoint != "" {
		return spec.Host(endpoint) == spec.Host(host)
	}
	for _, key := range []string{addonsv1.DefaultCredentialsKey, corev1.DockerConfigJsonKey} {
		var config struct {
			Auths map[string]json.RawMessage `json:"auths"`
		}
		if json.Unmarshal(data[key], &config) != nil {
			continue
		}
		for name := range config.Auths {
			if spec.Host(name) == spec.Host(host) {
				return true
			}
		}
	}
	return false
}
