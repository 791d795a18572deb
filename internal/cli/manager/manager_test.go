package manager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const complete = `apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: one}}]
clusters: [{name: one, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: one, user: {token: secret}}]
`

func TestManagedClusterConfig(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(complete), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ flag, environment, problem string }{
		"the flag":        {flag: file},
		"the environment": {environment: file},
		"a missing file":  {flag: file + ".none", environment: file, problem: "name its kubeconfig with --kubeconfig"},
		"an empty file":   {flag: empty, environment: file, problem: `"` + empty + `" is empty`},
		"neither":         {problem: "name its kubeconfig with --kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.environment)
			cfg, err := connect(tt.flag)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got error %v, want %q", err, tt.problem)
				}
				return
			}
			if err != nil || cfg.Host != "https://192.0.2.1:6443" {
				t.Errorf("got %v, %v", cfg, err)
			}
		})
	}
}

func TestOptionsAreValidatedBeforeConnecting(t *testing.T) {
	cmd := NewCommand()
	cmd.SetArgs([]string{"--concurrency", "0", "--kubeconfig", "/nonexistent"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--concurrency is 0") {
		t.Errorf("got error %v, want one that contains %q", err, "--concurrency is 0")
	}
}
