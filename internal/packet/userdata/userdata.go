package machine

import (
	"fmt"
	"regexp"
	"strings"
)

// maxUserdata is the most that is sent to a device. The API server keeps no larger Secret either, values that are filled in excepted.
const maxUserdata = 1 << 20

// Placeholders that userdata may hold, as in {{ .kubernetesVersion }}. They were once part of a template language; here they are all of
// it, so that the braces of other languages pass untouched.
const (
	keyVersion    = "kubernetesVersion"
	keyEndpoint   = "controlPlaneEndpoint"
	keyAPIKey     = "apiKey"
	keyCPEMConfig = "cpemConfig"
	keyEMLBID     = "emlbID"
)

var (
	placeholder = regexp.MustCompile(`\{\{-?\s*\.(` + strings.Join([]string{keyVersion, keyEndpoint, keyAPIKey, keyCPEMConfig, keyEMLBID}, "|") + `)\s*-?\}\}`)
	// quoted is how manifests protect the braces of cloud-init from the former template language: {{ `{{ v1.instance_id }}` }}.
	quoted = regexp.MustCompile("\\{\\{-?\\s*`([^`]*)`\\s*-?\\}\\}")
	// either finds both in one pass, so that what was quoted is not looked at again.
	either = regexp.MustCompile(quoted.String() + "|" + placeholder.String())
)

// render fills in the placeholders. A value that is not known becomes nothing. The API key is never filled in, as whoever can reach the
// metadata service could read it; withheld says that the userdata asked for it.
func render(userdata string, values map[string]string) (rendered string, withheld bool) {
	rendered = either.ReplaceAllStringFunc(userdata, func(found string) string {
		if m := quoted.FindStringSubmatch(found); m != nil {
			return m[1]
		}
		key := placeholder.FindStringSubmatch(found)[1]
		if key == keyAPIKey {
			withheld = true
			return ""
		}
		return values[key]
	})
	return rendered, withheld
}

// checkUserdata returns what is wrong with rendered userdata, or "".
func checkUserdata(rendered string) string {
	switch {
	case strings.TrimSpace(rendered) == "":
		return "the bootstrap data is empty"
	case len(rendered) > maxUserdata:
		return fmt.Sprintf("the bootstrap data is %d bytes, the most that a device takes is %d: move files into an image or fetch them at boot", len(rendered), maxUserdata)
	}
	return ""
}
