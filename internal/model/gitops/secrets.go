package gitops

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/model/document"
)

// Finding is a secret in a file. It never contains the secret.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// What is the kind of secret, such as "GitHub token".
	What string `json:"what"`
}

// String returns the finding on one line.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", printable(f.File), f.Line, f.What) }

// Secrets returns the secrets in the files below a path.
func Secrets(fsys fs.FS, dir string) ([]Finding, error) {
	t, err := load(fsys, dir)
	if err != nil {
		return nil, err
	}
	return Changes(t.files).Secrets(), nil
}

// Secrets returns the secrets in the files to write.
func (c Changes) Secrets() []Finding {
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(c)) {
		all = append(all, secretsIn(name, c[name])...)
	}
	return all
}

// secretsIn returns the secrets of a file, one per line.
func secretsIn(name string, data []byte) []Finding {
	byLine := map[int]string{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if what := matchRules(string(line)); what != "" {
			byLine[number] = what
		}
	}
	if isManifest(name) {
		maps.Copy(byLine, secretObjects(data))
	}
	var all []Finding
	for _, line := range slices.Sorted(maps.Keys(byLine)) {
		all = append(all, Finding{File: name, Line: line, What: byLine[line]})
	}
	return all
}

// secretKind is the line that starts a Secret in most files.
var secretKind = regexp.MustCompile(`(?m)^ *kind: *["']?Secret["']? *\r?$`)

// unparsedSecret returns the line of a Secret in a file that can't be parsed, unless the file is a
// template, whose values are elsewhere.
func unparsedSecret(data []byte) map[int]string {
	at := secretKind.FindIndex(data)
	if at == nil || bytes.Contains(data, []byte("{{")) {
		return nil
	}
	return map[int]string{1 + bytes.Count(data[:at[0]], []byte("\n")): "Secret in a file that can't be parsed"}
}

// secretObjects returns the Secrets and kubeconfigs of a file, by line.
func secretObjects(data []byte) map[int]string {
	if !bytes.Contains(data, []byte("Secret")) && !bytes.Contains(data, []byte("Config")) {
		return nil
	}
	objects, err := document.Objects(data)
	if err != nil {
		return unparsedSecret(data)
	}
	found := map[int]string{}
	for _, object := range objects {
		for _, one := range flatten([]map[string]any{object}) {
			if field, what := secretField(one); field != "" {
				outer := document.IDOf(object, "")
				line := document.Line(data, outer.Kind, outer.Name, field)
				found[max(line, 1)] = what
			}
		}
	}
	return found
}

// secretField returns the field of an object that has secrets, and what it is.
func secretField(object map[string]any) (field, what string) {
	id := document.IDOf(object, "")
	switch {
	case id.Group == "" && id.Kind == "Secret":
		for _, field := range []string{"data", "stringData"} {
			if hasPlainText(object[field]) {
				return field, "Secret with unencrypted values (encrypt it with SOPS, or create it outside of Git)"
			}
		}
	case id.Group == "" && id.Kind == "Config":
		if hasCredentials(object["users"]) {
			return "users", "kubeconfig with credentials"
		}
	}
	return "", ""
}

// hasPlainText reports whether a value of a Secret is neither encrypted by SOPS nor a placeholder.
func hasPlainText(values any) bool {
	fields, _ := values.(map[string]any)
	for _, value := range fields {
		text, _ := value.(string)
		if text != "" && !strings.HasPrefix(text, "ENC[") && !isPlaceholder(text) {
			return true
		}
	}
	return false
}

// hasCredentials reports whether a user of a kubeconfig has a secret in the file itself.
func hasCredentials(users any) bool {
	list, _ := users.([]any)
	for _, entry := range list {
		named, _ := entry.(map[string]any)
		user, _ := named["user"].(map[string]any)
		for _, field := range []string{"token", "password", "client-key-data"} {
			if text, _ := user[field].(string); text != "" && !isPlaceholder(text) {
				return true
			}
		}
	}
	return false
}
