package clients

import (
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// page lists the tests of the suite that don't pass, with reasons.
const page = "../../docs/reference/metal-clients.md"

// TestPackngoAcceptanceSuite runs the tests that packngo's authors ran against the original API.
// The reference page explains each that doesn't pass; both lists must be the same.
func TestPackngoAcceptanceSuite(t *testing.T) {
	binary := compile(t, "packngo", "github.com/packethost/packngo")
	var mu sync.Mutex
	failed := map[string]string{}
	passed := 0
	t.Run("suite", func(t *testing.T) {
		for _, name := range testsOf(t, binary, "^TestAcc|^TestWrongSSHKeyUpdate$") {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				out, ok := runTest(t, binary, name, "PACKNGO_TEST_ACTUAL_API=1", "PACKET_AUTH_TOKEN="+s.admin,
					"PACKET_API_URL="+s.url+"/", "HTTPS_PROXY="+s.url)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					passed++
				} else {
					failed[name] = out
				}
			})
		}
	})
	explained := explainedTests(t)
	for name, out := range failed {
		if !slices.Contains(explained, name) {
			t.Errorf("%s fails, and %s doesn't explain why:\n%s", name, page, out)
		}
	}
	for _, name := range explained {
		if _, found := failed[name]; !found {
			t.Errorf("%s passes or doesn't exist, but %s explains why it fails", name, page)
		}
	}
	t.Logf("%d tests passed, %d are explained", passed, len(failed))
}

// explainedTests returns the tests in the table of the reference page.
func explainedTests(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(data), -1) {
		out = append(out, m[1])
	}
	return out
}
