package management

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const complete = `apiVersion: v1
kind: Config
current-context: mine
contexts: [{name: mine, context: {cluster: mine, user: me, namespace: team-a}}]
clusters: [{name: mine, cluster: {server: "https://SERVER"}}]
users: [{name: me, user: {token: t}}]
`

// write puts a kubeconfig of a server into a file.
func write(t *testing.T, file, server string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(complete, "SERVER", server, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConfigPrefersTheFlagThenTheVariableThenTheHome(t *testing.T) {
	dir := t.TempDir()
	flag, variable := write(t, filepath.Join(dir, "flag"), "flag"), write(t, filepath.Join(dir, "variable"), "variable")
	write(t, filepath.Join(dir, "home", "kubeconfig"), "home")
	for _, tt := range []struct{ flag, variable, want string }{
		{flag, variable, "https://flag"},
		{"", variable, "https://variable"},
		{"", "", "https://home"},
	} {
		t.Setenv("KUBECONFIG", tt.variable)
		t.Setenv("DROVER_HOME", filepath.Join(dir, "home"))
		config, err := (&Flags{Kubeconfig: tt.flag}).Config()
		if err != nil || config.Host != tt.want {
			t.Errorf("flag %q, variable %q: %v, %v; want %s", tt.flag, tt.variable, config, err, tt.want)
		}
	}
}

func TestConfigWithoutAPlaneSuggestsACommand(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("DROVER_HOME", filepath.Join(t.TempDir(), "none"))
	if _, err := (&Flags{}).Config(); err == nil || !strings.Contains(err.Error(), "drover up") || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("got error %v, want one that suggests drover up and --kubeconfig", err)
	}
}

func TestEmptyKubeconfigIsNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ flag, variable string }{{empty, ""}, {"", empty}} {
		t.Setenv("KUBECONFIG", tt.variable)
		_, err := (&Flags{Kubeconfig: tt.flag}).Config()
		if err == nil || !strings.Contains(err.Error(), empty) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
			t.Errorf("flag %q, variable %q: error %v", tt.flag, tt.variable, err)
		}
	}
}

func TestNamespaceIsThatOfTheContext(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	file := write(t, filepath.Join(t.TempDir(), "config"), "x")
	if got := (&Flags{Kubeconfig: file}).Namespace(); got != "team-a" {
		t.Errorf("namespace %q, want team-a", got)
	}
	if got := (&Flags{Kubeconfig: file + ".none"}).Namespace(); got != "" {
		t.Errorf("namespace %q of a file that does not exist", got)
	}
}

func TestSuggestionsRepeatTheFlag(t *testing.T) {
	for kubeconfig, want := range map[string]string{"": "", "m.kubeconfig": " --kubeconfig m.kubeconfig"} {
		if got := (&Flags{Kubeconfig: kubeconfig}).Flag(); got != want {
			t.Errorf("%q is repeated as %q, want %q", kubeconfig, got, want)
		}
	}
}
