package kubeconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
)

const stored = `apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: one-admin, user: {token: secret}}]
contexts: [{name: one-admin@one, context: {cluster: one, user: one-admin}}]
current-context: one-admin@one
`

func parse(t *testing.T) *kubeconfig.Kubeconfig {
	t.Helper()
	k, err := kubeconfig.Parse([]byte(stored), kubeconfig.Origin{Plane: "https://plane", Namespace: "team-a", Cluster: "one"}, "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestCompletionsAreLimitedToTheNamespace(t *testing.T) {
	all := []inspect.CAPICluster{{Namespace: "team-a", Name: "one", Phase: "Provisioned"}, {Namespace: "team-b", Name: "two", Phase: "Deleting"}}
	for namespace, want := range map[string][]cobra.Completion{
		"":       {"one\tProvisioned in team-a", "two\tDeleting in team-b"},
		"team-b": {"two\tDeleting in team-b"},
		"team-c": nil,
	} {
		if diff := cmp.Diff(want, (&options{namespace: namespace}).completions(all)); diff != "" {
			t.Errorf("namespace %q (-want +got):\n%s", namespace, diff)
		}
	}
}

func TestKubeconfigIsPrintedWrittenOrMerged(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "one.kubeconfig"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("not a kubeconfig"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name                 string
		options              options
		out, progress, error string
	}{
		{"printed", options{}, "server: https://10.0.0.1:6443", "", ""},
		{"written", options{output: file}, "", "Wrote " + file, ""},
		{"merged", options{output: file, merge: true}, "", "Merged into " + file, ""},
		{"another file is kept", options{output: other}, "", "", "or add to it with --merge"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, progress bytes.Buffer
			err := tc.options.deliver(t.Context(), &ui.IO{Out: &out, Err: &progress}, parse(t))
			if (err != nil) != (tc.error != "") || err != nil && !strings.Contains(err.Error(), tc.error) {
				t.Fatalf("error %v, want %q", err, tc.error)
			}
			if !strings.Contains(out.String(), tc.out) || !strings.Contains(progress.String(), tc.progress) || tc.out == "" && out.Len() > 0 {
				t.Errorf("printed %q and %q, want %q and %q", out.String(), progress.String(), tc.out, tc.progress)
			}
		})
	}
}
