package flux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/test/gittest"
)

// file writes a file and returns its path.
func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFromEnvironment(t *testing.T) {
	private, public := gittest.NewKey(t, "ecdsa", "hunter2")
	hosts := append([]byte("example.com "), public...)
	ca := gittest.NewHTTPS(t).CA
	onGitHub := anywherev1.FluxConfigSpec{Github: &anywherev1.GithubProviderConfig{Owner: "acme", Repository: "fleet"}}
	overSSH := anywherev1.FluxConfigSpec{Branch: "prod", Git: &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@example.com/fleet.git"}}
	overHTTPS := anywherev1.FluxConfigSpec{Git: &anywherev1.GitProviderConfig{RepositoryURL: "https://example.com/fleet.git"}}
	for name, test := range map[string]struct {
		spec anywherev1.FluxConfigSpec
		env  map[string]string
		want git.Remote
		says []string
	}{
		"GitHub": {
			spec: onGitHub, env: map[string]string{EnvGitHubToken: " ghp_1\n"},
			want: git.Remote{URL: "https://github.com/acme/fleet.git", Branch: "main", Credentials: git.Credentials{Username: "git", Password: "ghp_1"}},
		},
		"ssh": {
			spec: overSSH, env: map[string]string{EnvPrivateKey: file(t, private), EnvPassphrase: "hunter2", EnvKnownHosts: file(t, hosts)},
			want: git.Remote{URL: "ssh://git@example.com/fleet.git", Branch: "prod", Credentials: git.Credentials{PrivateKey: private, Passphrase: "hunter2", KnownHosts: hosts}},
		},
		"https": {
			spec: overHTTPS, env: map[string]string{EnvUsername: "jane", EnvPassword: "hunter2", EnvCAFile: file(t, ca)},
			want: git.Remote{URL: "https://example.com/fleet.git", Branch: "main", Credentials: git.Credentials{Username: "jane", Password: "hunter2", CA: ca}},
		},
		"a signing key": {
			spec: onGitHub, env: map[string]string{EnvGitHubToken: "ghp_1", EnvSigningKey: file(t, private), EnvSigningPassphrase: "hunter2"},
			want: git.Remote{URL: "https://github.com/acme/fleet.git", Branch: "main", Credentials: git.Credentials{Username: "git", Password: "ghp_1", SigningKey: private, SigningPassphrase: "hunter2"}},
		},
		"a locked signing key":   {spec: onGitHub, env: map[string]string{EnvGitHubToken: "ghp_1", EnvSigningKey: file(t, private), EnvSigningPassphrase: "hunter3"}, says: []string{EnvSigningPassphrase, "reading signing key"}},
		"GitHub without a token": {spec: onGitHub, says: []string{EnvGitHubToken}},
		"ssh without anything":   {spec: overSSH, says: []string{EnvPrivateKey, EnvKnownHosts}},
		"https without anything": {spec: overHTTPS, says: []string{EnvPassword}},
		"missing files":          {spec: overSSH, env: map[string]string{EnvPrivateKey: "/nowhere/key", EnvKnownHosts: file(t, nil)}, says: []string{"/nowhere/key", "is empty"}},
		"wrong passphrase": {
			spec: overSSH, env: map[string]string{EnvPrivateKey: file(t, private), EnvPassphrase: "hunter3", EnvKnownHosts: file(t, hosts)},
			says: []string{"reading private key"},
		},
		"neither": {says: []string{"either github or git"}},
		"both":    {spec: anywherev1.FluxConfigSpec{Github: onGitHub.Github, Git: overSSH.Git}, says: []string{"either github or git"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FromEnvironment(test.spec, func(name string) string { return test.env[name] })
			if test.says == nil {
				if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
					t.Errorf("error %v: %s", err, diff)
				}
				return
			}
			for _, says := range test.says {
				if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter") {
					t.Errorf("error %v, want %q", err, says)
				}
			}
		})
	}
}

func TestSecretsHaveTheFormOfFlux(t *testing.T) {
	private, public := gittest.NewKey(t, "ed25519", "hunter2")
	hosts := append([]byte("example.com "), public...)
	ca := gittest.NewHTTPS(t).CA
	for name, test := range map[string]struct {
		remote git.Remote
		want   map[string]string
	}{
		"https": {
			git.Remote{URL: "https://example.com/a", Branch: "main", Credentials: git.Credentials{Username: "jane", Password: "hunter2", CA: ca}},
			map[string]string{"username": "jane", "password": "hunter2", "ca.crt": string(ca)},
		},
		"https with a token": {
			git.Remote{URL: "https://example.com/a", Branch: "main", Credentials: git.Credentials{Username: "git", Password: "hunter2"}},
			map[string]string{"username": "git", "password": "hunter2"},
		},
		"a signing key": {
			git.Remote{URL: "https://example.com/a", Branch: "main", Credentials: git.Credentials{Username: "git", Password: "hunter2", SigningKey: private, SigningPassphrase: "hunter2"}},
			map[string]string{"username": "git", "password": "hunter2", "signing-key": string(private), "signing-passphrase": "hunter2"},
		},
		"ssh": {
			git.Remote{URL: "git@example.com:a", Branch: "main", Credentials: git.Credentials{PrivateKey: private, Passphrase: "hunter2", KnownHosts: hosts}},
			map[string]string{"identity": string(private), "identity.pub": strings.TrimSpace(string(public)) + "\n", "known_hosts": string(hosts), "password": "hunter2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret, err := ToSecret(test.remote, types.NamespacedName{Namespace: "flux-system", Name: "flux-system"})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for key, value := range secret.Data {
				got[key] = string(value)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || secret.Namespace != "flux-system" || secret.Name != "flux-system" {
				t.Error(diff)
			}
			back, err := FromSecret(secret, test.remote.URL, test.remote.Branch)
			if diff := cmp.Diff(test.remote, back); diff != "" || err != nil {
				t.Errorf("error %v: %s", err, diff)
			}
		})
	}
}

func TestUnusableSecretsAreRejected(t *testing.T) {
	locked, _ := gittest.NewKey(t, "ed25519", "hunter2")
	for name, test := range map[string]struct {
		url, says string
		data      map[string]string
	}{
		"bearer token":          {"https://example.com/a", "use username and password", map[string]string{"bearerToken": "hunter2"}},
		"ssh with a password":   {"ssh://example.com/a", "requires a private key", map[string]string{"username": "jane", "password": "hunter2"}},
		"https with half of it": {"https://example.com/a", "password is required", map[string]string{"username": "jane"}},
		"a locked signing key":  {"https://example.com/a", "reading signing key", map[string]string{"signing-key": string(locked), "signing-passphrase": "hunter3"}},
		"a CA of nonsense":      {"https://example.com/a", "reading CA", map[string]string{"caFile": "hunter2"}},
		"a URL with a password": {"https://jane:hunter2@example.com/a", "credentials", nil},
	} {
		secret := &corev1.Secret{Data: map[string][]byte{}}
		secret.Namespace, secret.Name = "default", "fleet"
		for key, value := range test.data {
			secret.Data[key] = []byte(value)
		}
		_, err := FromSecret(secret, test.url, "main")
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), `"default/fleet"`) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want %q", name, err, test.says)
		}
	}
	var invalid *git.InvalidError
	if _, err := ToSecret(git.Remote{}, types.NamespacedName{}); !errors.As(err, &invalid) {
		t.Errorf("error %v", err)
	}
}

func FuzzSecret(f *testing.F) {
	f.Add("https://example.com/a", "main", "jane", "password", "", "", "")
	f.Add("git@example.com:a", "main", "", "passphrase", "", "-----BEGIN OPENSSH PRIVATE KEY-----\n", "example.com ssh-ed25519 AAAA\n")
	f.Fuzz(func(t *testing.T, url, branch, username, password, ca, identity, hosts string) {
		secret := &corev1.Secret{Data: map[string][]byte{
			"username": []byte(username), "password": []byte(password), "ca.crt": []byte(ca), "identity": []byte(identity), "known_hosts": []byte(hosts),
		}}
		remote, err := FromSecret(secret, url, branch)
		if err != nil {
			return
		}
		if remote.Credentials.Password != "" && remote.Credentials.Username == "" {
			remote.Credentials.Username = defaultUser
		}
		again, err := ToSecret(remote, types.NamespacedName{})
		if err != nil {
			t.Fatalf("a valid remote has no Secret: %v", err)
		}
		if back, err := FromSecret(again, url, branch); err != nil || !cmp.Equal(remote, back, cmp.Transformer("text", func(b []byte) string { return string(b) })) {
			t.Errorf("error %v", err)
		}
	})
}
