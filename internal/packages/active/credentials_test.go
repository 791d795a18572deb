package active

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"
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

func TestAMirrorIsReadAsUsersWriteIt(t *testing.T) {
	ca := certificate(t)
	m, err := parseMirror(bytesOf(map[string]string{
		"ENDPOINT": "https://mirror.test:443/proxy", "USERNAME": "drover", "PASSWORD": "p:w\n", "CACERTCONTENT": ca, "INSECURE": "True",
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if m.host != "mirror.test:443" || !m.insecure || string(m.ca) != ca {
		t.Errorf("mirror %q, insecure %t, CA of %d bytes", m.host, m.insecure, len(m.ca))
	}
	var config struct {
		Auths map[string]struct{ Auth string }
	}
	if err := json.Unmarshal(m.config, &config); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"mirror.test:443", "mirror.test"} {
		if got, _ := base64.StdEncoding.DecodeString(config.Auths[host].Auth); string(got) != "drover:p:w" {
			t.Errorf("%q is opened with %q", host, got)
		}
	}
	if a := m.access()["mirror.test:443"]; !a.SkipTLSVerify || string(a.CA) != ca || len(m.access()) != 1 {
		t.Errorf("access to %d hosts", len(m.access()))
	}
	again, err := parseMirror(bytesOf(map[string]string{"CACERTCONTENT": base64.StdEncoding.EncodeToString([]byte(ca))}), "registry.test")
	if err != nil || again.host != "registry.test" || string(again.ca) != ca {
		t.Errorf("encoded once more: %v, %v", again, err)
	}
	if got := string(again.config); got != `{"auths":{}}` {
		t.Errorf("without a password: %s", got)
	}
}

func TestAMirrorThatCanNotBeReadIsSaidWithoutSecrets(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"no address":        {"PASSWORD": "canary"},
		"not a certificate": {"ENDPOINT": "m.test", "CACERTCONTENT": "canary"},
		"neither":           {"ENDPOINT": "m.test", "INSECURE": "canary"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseMirror(bytesOf(data), ""); err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("parseMirror() = %v", err)
			}
		})
	}
}

func TestMakePlan(t *testing.T) {
	web, shop, cloud := spot{"web", MirrorCredentials}, spot{"shop", MirrorCredentials}, spot{"eksa-packages", CloudSecret}
	wrote := func(version string, age time.Duration) copied {
		return copied{written: map[spot]mark{web: {stamp: "1", version: version, at: noon.Add(-age)}}}
	}
	for name, test := range map[string]struct {
		wanted map[spot]string
		there  map[spot]present
		copied copied
		want   plan
	}{
		"nothing":                               {},
		"new":                                   {wanted: map[spot]string{web: "1"}, want: plan{write: []spot{web}}},
		"without a namespace":                   {wanted: map[spot]string{shop: "1"}},
		"the namespace that is made if need be": {wanted: map[spot]string{cloud: "1"}, want: plan{write: []spot{cloud}}},
		"as it was written": {
			wanted: map[spot]string{web: "1"}, there: map[spot]present{web: {"1", "10"}}, copied: wrote("10", time.Hour),
		},
		"written, and the watch does not know yet": {wanted: map[spot]string{web: "1"}, copied: wrote("10", time.Second)},
		"written long ago, and gone":               {wanted: map[spot]string{web: "1"}, copied: wrote("10", time.Hour), want: plan{write: []spot{web}}},
		"rewritten, and the watch tells the one before": {
			wanted: map[spot]string{web: "1"}, there: map[spot]present{web: {"1", "9"}}, copied: wrote("10", time.Second),
		},
		"changed by somebody else": {
			wanted: map[spot]string{web: "1"}, there: map[spot]present{web: {"1", "11"}}, copied: wrote("10", time.Hour), want: plan{write: []spot{web}},
		},
		"written by a manager before": {wanted: map[spot]string{web: "1"}, there: map[spot]present{web: {"1", "10"}}, want: plan{write: []spot{web}}},
		"rotated": {
			wanted: map[spot]string{web: "2"}, there: map[spot]present{web: {"1", "10"}}, copied: wrote("10", time.Hour), want: plan{write: []spot{web}},
		},
		"no longer needed": {there: map[spot]present{shop: {"1", "3"}, web: {"1", "2"}}, want: plan{remove: []spot{shop, web}}},
		"somebody else's":  {wanted: map[spot]string{web: "1"}, copied: copied{others: map[spot]string{web: "1"}}},
		"somebody else's, before a rotation": {
			wanted: map[spot]string{web: "2"}, copied: copied{others: map[spot]string{web: "1"}}, want: plan{write: []spot{web}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := makePlan(situation{now: noon, wanted: test.wanted, there: test.there, copied: test.copied, exists: func(n string) bool { return n == "web" }})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(plan{}, spot{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVersionsOfServersAreUnderstood(t *testing.T) {
	for want, info := range map[string]version.Info{
		"1.36": {Major: "1", Minor: "36"}, "1.27": {Major: "1", Minor: "27+"}, "1.35": {GitVersion: "v1.35.2-some+build"},
	} {
		if got := minor(&info); got != want {
			t.Errorf("minor(%+v) = %q, want %q", info, got, want)
		}
	}
}
