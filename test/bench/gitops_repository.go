package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// repository is a Git repository that is served over TLS and requires a password.
type repository struct {
	server         *httptest.Server
	bare, work     string
	password, home string
	// tip is the newest commit.
	tip string
}

func serveRepository(dir string) (*repository, error) {
	r := &repository{bare: filepath.Join(dir, "fleet.git"), work: filepath.Join(dir, "work"), home: dir, password: rand.Text()}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"init", "--quiet", "--bare", "--initial-branch=main", r.bare}, {"clone", "--quiet", r.bare, r.work}} {
		if _, err := r.git(args...); err != nil {
			return nil, err
		}
	}
	core, err := r.git("--exec-path")
	if err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path: filepath.Join(core, "git-http-backend"), Root: "/", Logger: log.New(io.Discard, "", 0), Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	r.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, password, _ := request.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(password), []byte(r.password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, request)
	}))
	return r, nil
}

func (r *repository) stop() { r.server.Close() }

// git runs git without the settings of the user and of the host.
func (r *repository) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "HOME="+r.home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@example.com", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %v: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// push commits files.
func (r *repository) push(files map[string]string) error {
	for name, content := range files {
		if err := writeFile(filepath.Join(r.work, name), content); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--message=change"}, {"push", "--quiet", "origin", "HEAD:main"}} {
		if _, err := r.git(append([]string{"-C", r.work}, args...)...); err != nil {
			return err
		}
	}
	var err error
	r.tip, err = r.git("-C", r.work, "rev-parse", "HEAD")
	return err
}

func writeFile(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(content), 0o600)
}

// manifests connect the repository for the default namespace.
func (r *repository) manifests() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: %[1]s
  namespace: flux-system
  annotations: {%[2]s: %[3]q, %[4]s: default, %[8]s: %[7]s}
stringData: {username: git, password: %[5]q, ca.crt: %[6]q}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: FluxConfig
metadata: {name: fleet, namespace: default}
spec: {clusterConfigPath: %[7]s, branch: main, git: {repositoryUrl: %[3]q}}
`, anywherev1.GitCredentials, anywherev1.GitURLAnnotation, r.server.URL+"/fleet.git", anywherev1.CredentialsNamespacesAnnotation, r.password, ca, gitOpsPath, anywherev1.GitPathsAnnotation)
}
