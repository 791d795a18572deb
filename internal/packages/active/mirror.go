package active

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
	"github.com/drover-dev/drover/internal/artifact"
)

// Names of Secrets that users and charts know.
const (
	// MirrorSecret is what a user says about a registry mirror, in the namespace of a cluster's packages or in the one for all.
	MirrorSecret = "registry-mirror-secret"
	// MirrorCredentials is made of it, for HelmReleaseProxies here and for pods on clusters.
	MirrorCredentials = "registry-mirror-cred"
	// CloudSecret is copied as it is.
	CloudSecret = "aws-secret"
	// InsecureKey of MirrorCredentials is true if the mirror's certificate is not to be checked.
	InsecureKey = "insecure"
)

// mirror is a registry mirror, and how it is opened.
type mirror struct {
	host string
	// config is a docker config.
	config   []byte
	ca       []byte
	insecure bool
}

// parseMirror reads what a user said. Errors never repeat it. A mirror without an address is the registry itself.
func parseMirror(data map[string][]byte, registry string) (*mirror, error) {
	value := func(key string) string { return strings.TrimSpace(string(data[key])) }
	m := &mirror{}
	endpoint := value("ENDPOINT")
	if _, rest, found := strings.Cut(endpoint, "://"); found {
		endpoint = rest
	}
	m.host, _, _ = strings.Cut(strings.Trim(endpoint, "/"), "/")
	if m.host == "" {
		m.host = registry
	}
	if m.host == "" {
		return nil, errors.New("ENDPOINT is empty")
	}
	var err error
	if text := value("INSECURE"); text != "" {
		if m.insecure, err = strconv.ParseBool(strings.ToLower(text)); err != nil {
			return nil, errors.New("INSECURE is neither true nor false")
		}
	}
	if m.ca, err = certificates(value("CACERTCONTENT")); err != nil {
		return nil, err
	}
	m.config, err = dockerConfig(m.host, value("USERNAME"), strings.TrimRight(string(data["PASSWORD"]), "\r\n"))
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

// data is what MirrorCredentials has on the management plane.
func (m *mirror) data() map[string][]byte {
	out := map[string][]byte{
		corev1.DockerConfigJsonKey: m.config, addonsv1.DefaultCredentialsKey: m.config, InsecureKey: []byte(strconv.FormatBool(m.insecure)),
	}
	if len(m.ca) > 0 {
		out[addonsv1.CAKey] = m.ca
	}
	return out
}

// access opens the mirror and nothing else.
func (m *mirror) access() map[string]artifact.Access {
	return map[string]artifact.Access{m.host: {DockerConfig: m.config, CA: m.ca, SkipTLSVerify: m.insecure}}
}
