package kubeconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const complete = `apiVersion: v1
kind: Config
current-context: mine
contexts: [{name: mine, context: {cluster: mine, user: me}}]
clusters: [{name: mine, cluster: {server: "https://plane"}}]
users: [{name: me, user: {token: t}}]
`

func TestConnectReportsWhatAKubeconfigLacks(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1") // the fallback of client-go
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	for name, tt := range map[string]struct{ content, want string }{
		"an empty file":             {"", "is empty"},
		"no current context":        {strings.Replace(complete, "current-context: mine\n", "", 1), "has no current context"},
		"a missing current context": {strings.Replace(complete, "current-context: mine", "current-context: other", 1), `lacks its current context "other"`},
		"a missing cluster":         {strings.Replace(complete, "{cluster: mine,", "{cluster: other,", 1), `lacks cluster "other" of its current context "mine"`},
		"no server":                 {strings.Replace(complete, "https://plane", "", 1), `has no server for cluster "mine"`},
		"a missing user":            {strings.Replace(complete, "user: me}", "user: other}", 1), `lacks user "other" of its current context "mine"`},
		"no YAML":                   {"contexts: [", "yaml: line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			for flag, variable := range map[string]string{file: "", "": file} {
				t.Setenv("KUBECONFIG", variable)
				config, err := Connect(flag)
				if err == nil {
					t.Fatalf("Connect(%q) with KUBECONFIG=%q returned %s, want an error", flag, variable, config.Host)
				}
				if got := err.Error(); !strings.Contains(got, `"`+file+`"`) || !strings.Contains(got, tt.want) || strings.Contains(got, "KUBERNETES_MASTER") {
					t.Errorf("Connect(%q) with KUBECONFIG=%q: got error %q, want one that contains %q and %q", flag, variable, got, file, tt.want)
				}
			}
		})
	}
}

func TestConnectReportsMissingFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for flag, variable := range map[string]string{missing: "", "": missing} {
		t.Setenv("KUBECONFIG", variable)
		_, err := Connect(flag)
		if err == nil || !strings.Contains(err.Error(), missing) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Connect(%q) with KUBECONFIG=%q: got error %v, want that %q does not exist", flag, variable, err, missing)
		}
	}
}

func TestConnectMergesTheFilesOfTheVariable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(complete), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "missing")+string(filepath.ListSeparator)+file)
	config, err := Connect("")
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://plane" || config.BearerToken != "t" {
		t.Errorf("got host %q and token %q, want those of the file that exists", config.Host, config.BearerToken)
	}
}
