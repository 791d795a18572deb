package mirror

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func certificate(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func bytesOf(in map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range in {
		out[key] = []byte(value)
	}
	return out
}

func TestParse(t *testing.T) {
	ca := certificate(t)
	m, err := Parse(bytesOf(map[string]string{
		"ENDPOINT": "https://mirror.test:443/proxy", "USERNAME": "drover", "PASSWORD": "p:w\n", "CACERTCONTENT": ca, "INSECURE": "True",
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if m.Host != "mirror.test:443" || !m.Insecure || string(m.CA) != ca {
		t.Errorf("mirror %q, insecure %t, CA of %d bytes", m.Host, m.Insecure, len(m.CA))
	}
	var config struct {
		Auths map[string]struct{ Auth string }
	}
	if err := json.Unmarshal(m.Config, &config); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"mirror.test:443", "mirror.test"} {
		if got, _ := base64.StdEncoding.DecodeString(config.Auths[host].Auth); string(got) != "drover:p:w" {
			t.Errorf("credentials of %q are %q", host, got)
		}
	}
	if a := m.Access()["mirror.test:443"]; !a.SkipTLSVerify || string(a.CA) != ca || len(m.Access()) != 1 {
		t.Errorf("access to %d hosts", len(m.Access()))
	}
	again, err := Parse(bytesOf(map[string]string{"CACERTCONTENT": base64.StdEncoding.EncodeToString([]byte(ca))}), "registry.test")
	if err != nil || again.Host != "registry.test" || string(again.CA) != ca {
		t.Errorf("CA in base64: %v, %v", again, err)
	}
	if got := string(again.Config); got != `{"auths":{}}` {
		t.Errorf("config without credentials: %s", got)
	}
}

func TestParseErrorsContainNoSecrets(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"no endpoint":       {"PASSWORD": "canary"},
		"not a certificate": {"ENDPOINT": "m.test", "CACERTCONTENT": "canary"},
		"not a bool":        {"ENDPOINT": "m.test", "INSECURE": "canary"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(bytesOf(data), ""); err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("Parse() = %v", err)
			}
		})
	}
}

func TestServes(t *testing.T) {
	m, err := Parse(bytesOf(map[string]string{"ENDPOINT": "https://mirror.test:443/proxy"}), "")
	if err != nil {
		t.Fatal(err)
	}
	byHand := bytesOf(map[string]string{".dockerconfigjson": `{"auths":{"https://hub.test/v1/":{},"other.test:5000":{}}}`})
	for _, tc := range []struct {
		name string
		data map[string][]byte
		host string
		want bool
	}{
		{"endpoint", m.Data(), "mirror.test:443", true},
		{"endpoint without the default port", m.Data(), "mirror.test", true},
		{"endpoint with another port", m.Data(), "mirror.test:5000", false},
		{"another host", m.Data(), "registry.test", false},
		{"no host", m.Data(), "", false},
		{"host of the Docker config", byHand, "other.test:5000", true},
		{"host of a URL in the Docker config", byHand, "hub.test", true},
		{"host that is not in the Docker config", byHand, "mirror.test", false},
		{"invalid Docker config", bytesOf(map[string]string{".dockerconfigjson": "canary"}), "mirror.test", false},
		{"no data", nil, "mirror.test", false},
	} {
		if got := Serves(tc.data, tc.host); got != tc.want {
			t.Errorf("%s: Serves(%q) = %t", tc.name, tc.host, got)
		}
	}
}

func TestAccessWithoutPasswordHasNoDockerConfig(t *testing.T) {
	m, err := Parse(bytesOf(map[string]string{"ENDPOINT": "mirror.test", "INSECURE": "true"}), "")
	if err != nil {
		t.Fatal(err)
	}
	if a := m.Access()["mirror.test"]; len(a.DockerConfig) > 0 || !a.SkipTLSVerify {
		t.Errorf("access with a docker config of %d bytes", len(a.DockerConfig))
	}
}
