// Package userdata makes of a machine's bootstrap data what a device is given: it fills in the few placeholders that manifests hold, and
// finds out beforehand what no machine could boot from.
//
// It is pure and imports nothing of Kubernetes. It reads no more of the data than it must: what a machine makes of it is the machine's
// concern. Start with Render and Check.
package userdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxSize is the most that is sent to a device. The API server keeps no larger Secret either, values that are filled in excepted.
const MaxSize = 1 << 20

// Keys of the placeholders that userdata may hold, as in {{ .kubernetesVersion }}. They were once part of a template language; here they are
// all of it, so that the braces of other languages pass untouched.
const (
	KeyVersion    = "kubernetesVersion"
	KeyEndpoint   = "controlPlaneEndpoint"
	KeyAPIKey     = "apiKey"
	KeyCPEMConfig = "cpemConfig"
	KeyEMLBID     = "emlbID"
)

var (
	placeholder = regexp.MustCompile(`\{\{-?\s*\.(` + strings.Join([]string{KeyVersion, KeyEndpoint, KeyAPIKey, KeyCPEMConfig, KeyEMLBID}, "|") + `)\s*-?\}\}`)
	// quoted is how manifests protect the braces of cloud-init from the former template language: {{ `{{ v1.instance_id }}` }}.
	quoted = regexp.MustCompile("\\{\\{-?\\s*`([^`]*)`\\s*-?\\}\\}")
	// either finds both in one pass, so that what was quoted is not looked at again.
	either = regexp.MustCompile(quoted.String() + "|" + placeholder.String())
)

// Render fills in the placeholders. A value that is not known becomes nothing. The API key is never filled in, as whoever can reach the
// metadata service could read it; withheld says that the userdata asked for it.
func Render(data string, values map[string]string) (rendered string, withheld bool) {
	rendered = either.ReplaceAllStringFunc(data, func(found string) string {
		if m := quoted.FindStringSubmatch(found); m != nil {
			return m[1]
		}
		key := placeholder.FindStringSubmatch(found)[1]
		if key == KeyAPIKey {
			withheld = true
			return ""
		}
		return values[key]
	})
	return rendered, withheld
}

// Check returns what is wrong with rendered userdata, or "".
func Check(rendered string) string {
	switch {
	case strings.TrimSpace(rendered) == "":
		return "the bootstrap data is empty"
	case len(rendered) > MaxSize:
		return fmt.Sprintf("the bootstrap data is %d bytes, the most that a device takes is %d: move files into an image or fetch them at boot", len(rendered), MaxSize)
	}
	if err := checkYAML(rendered); err != nil {
		return "the bootstrap data is a cloud-config that is not YAML: " + err.Error()
	}
	return ""
}

// header is the first line of a cloud-config that is read as it is. One with a template's header before it is YAML only once it is filled in
// on the machine.
const header = "#cloud-config"

// line is where the parser says it stumbled. What it says beyond that repeats the data, which may be secret.
var line = regexp.MustCompile(`line \d+`)

// checkYAML looks at the syntax only, as it does not know what keys mean to a machine.
func checkYAML(rendered string) error {
	first, _, _ := strings.Cut(strings.TrimLeft(rendered, "\ufeff\r\n\t "), "\n")
	if strings.TrimSpace(first) != header {
		return nil
	}
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader([]byte(rendered))).Decode(&document)
	switch {
	case errors.Is(err, io.EOF): // comments only
		return nil
	case err != nil:
		return fmt.Errorf("look at %s", cmp.Or(line.FindString(err.Error()), "its beginning"))
	case len(document.Content) > 0 && document.Content[0].Kind != yaml.MappingNode && document.Content[0].Tag != "!!null":
		return errors.New("it must hold keys and values")
	}
	return nil
}
