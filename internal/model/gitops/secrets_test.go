package gitops_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/gitops"
)

// block returns a PEM block. Tests put tokens together, so that this file contains none.
func block(kind string) string {
	return "-----BEGIN " + kind + "-----\nMIIEowIBAAKCAQEA\n-----END " + kind + "-----\n"
}

func TestSecretsFindsSecrets(t *testing.T) {
	long := strings.Repeat("aB3", 30)
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, one := range []struct {
		name, text string
		line       int
		what       string
	}{
		{"a PEM key", "a: |\n  " + block("RSA PRIVATE KEY"), 2, "private key"},
		{"an OpenSSH key", block("OPENSSH PRIVATE KEY"), 1, "private key"},
		{"an encoded key", "x: " + encoded(block("PRIVATE KEY")), 1, "encoded private key"},
		{"an encoded EC key", "x: " + encoded(block("EC PRIVATE KEY")), 1, "encoded private key"},
		{"an age key", "AGE-SECRET-" + "KEY-1" + strings.Repeat("Q", 58), 1, "age private key"},
		{"a GitHub token", "\n\ntoken: gh" + "p_" + long[:36], 3, "GitHub token"},
		{"a fine-grained GitHub token", "github_" + "pat_" + long[:22] + "_" + long[:59], 1, "GitHub token"},
		{"a GitLab token", "t: gl" + "pat-" + long[:20], 1, "GitLab token"},
		{"an AWS key", "id: AK" + "IAQ2W3E4R5T6Y7U8I9", 1, "AWS access key"},
		{"a Slack token", "xox" + "b-123456789012-abcdefghijkl", 1, "Slack token"},
		{"a JSON Web Token", "x: ey" + "JhbGciOiJub25lIn0.ey" + "JzdWIiOiJhZG1pbiJ9." + long[:20], 1, "JSON Web Token"},
		{"a bearer token", `"Authorization": "Bearer ` + long[:24] + `"`, 1, "bearer token"},
		{"a password in a URL", "url: https://git:hunter2@git.example.com/x.git", 1, "password in a URL"},
		{"a Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  a: YQ==\n", 4, "Secret with unencrypted values"},
		{"a second Secret with text", "a: b\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: hunter2}\n", 6, "Secret with unencrypted values"},
		{"a Secret that looks like a variable", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: $ecret1, b: \"${X}\"}\n", 4, "Secret with unencrypted values"},
		{"a Secret of capital letters", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: QUJD}\n", 4, "Secret with unencrypted values"},
		{"a Secret in a List", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  data: {a: YQ==}\n", 1, "Secret with unencrypted values"},
		{"a Secret with one value that is not encrypted", "apiVersion: v1\nkind: Secret\ndata: {a: 'ENC[AES256_GCM,data:x]', b: YQ==}\nsops: {mac: x}\n", 3, "Secret with unencrypted values"},
		{"a Secret in a broken file", "a: [\n---\nkind: Secret\ndata: {a: YQ==}\n", 3, "Secret in a file that can't be parsed"},
		{"a kubeconfig", "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {token: abc}\n", 3, "kubeconfig with credentials"},
	} {
		t.Run(one.name, func(t *testing.T) {
			got := gitops.Changes{"a.yaml": []byte(one.text), "gone.yaml": nil}.Secrets()
			if len(got) != 1 || got[0].Line != one.line || !strings.HasPrefix(got[0].What, one.what) || got[0].File != "a.yaml" {
				t.Errorf("got %v, want %s on line %d", got, one.what, one.line)
			}
		})
	}
}

func TestSecretsAcceptsHarmlessText(t *testing.T) {
	for name, text := range map[string]string{
		"a certificate":                "x: |\n  " + block("CERTIFICATE"),
		"a public key":                 block("PUBLIC KEY"),
		"an encoded certificate":       "caBundle: " + base64.StdEncoding.EncodeToString([]byte(block("CERTIFICATE"))),
		"a public SSH key":             "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN2ng4LlUFAUBGgGZ5oWJ1WmB1tHAMcCr0j+0bfq2Gb8 ops@example.com",
		"an encrypted Secret":          "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 'ENC[AES256_GCM,data:abc,iv:x,tag:y,type:str]'}\nsops: {mac: x}\n",
		"a SealedSecret":               "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a}\nspec: {encryptedData: {a: AgB7}}\n",
		"an empty Secret":              "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: \"\"}\n",
		"a Secret with a placeholder":  "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: \"${TOKEN}\"}\n",
		"a template of a Secret":       "apiVersion: v1\nkind: Secret\ndata:\n  {{- range .x }}\n  a: {{ .y }}\n  {{- end }}\n",
		"a reference to a Secret":      "secretRef: {kind: Secret, name: github-token}",
		"a kubeconfig with a plugin":   "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {exec: {command: drover}}\n",
		"a URL with a user":            "url: ssh://git@git.example.com/team/fleet.git",
		"a URL with a port":            "url: http://proxy.example.com:3128/a@b",
		"a URL with a placeholder":     "url: https://user:${PASSWORD}@example.com and https://user:<password>@example.com or https://user:xxxxx@example.com, https://USER:PASSWORD@example.com",
		"the example of AWS":           "id: AK" + "IAIOSFODNN7EXAMPLE",
		"a digest":                     "image: a@sha256:" + strings.Repeat("0a1b", 16),
		"a word that starts like one":  "ghp_short glpat-x AKIA eyJ.eyJ.x",
		"a bearer token in a variable": "Authorization: Bearer $(cat /var/run/token/of/the/service/account)",
		"a spec":                       specText("dev") + packetText(t),
	} {
		t.Run(name, func(t *testing.T) {
			if got := (gitops.Changes{"a.yaml": []byte(text)}).Secrets(); len(got) > 0 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSecretsReadsARepositoryWithoutPrintingSecrets(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("z", 36)
	fsys := repository(map[string]string{"b/notes.md": "a\n" + token, "a/x.yaml": "y: " + token, ".git/config": token})
	got, err := gitops.Secrets(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	want := []gitops.Finding{{File: "a/x.yaml", Line: 1, What: "GitHub token"}, {File: "b/notes.md", Line: 2, What: "GitHub token"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range got {
		if strings.Contains(f.String(), "zzz") {
			t.Errorf("%s has the secret", f)
		}
	}
}
