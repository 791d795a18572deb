package artifact_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/registry/artifact"
)

func TestTrustRegistry(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte("a CA"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		url, ca string
		want    map[string]artifact.Access
		err     error
	}{
		"none":                          {},
		"one with a CA of its own":      {"https://127.0.0.1:5000", ca, map[string]artifact.Access{"127.0.0.1:5000": {CA: []byte("a CA")}}, nil},
		"one that the system trusts":    {"https://registry.example.com", "", map[string]artifact.Access{"registry.example.com": {}}, nil},
		"one whose CA can't be read":    {"https://127.0.0.1:5000", ca + "x", nil, os.ErrNotExist},
		"one with a path, which is cut": {"https://127.0.0.1:5000/v2/", ca, map[string]artifact.Access{"127.0.0.1:5000": {CA: []byte("a CA")}}, nil},
	} {
		got, err := artifact.TrustRegistry(tc.url, tc.ca)
		if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
