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

// MaxSize is the most that Drover sends to a device. The API server stores no larger Secret either,
// except that filling in placeholders may lengthen the data.
const MaxSize = 1 << 20

// Check returns why no machine could boot with the bootstrap data, or "". The answer completes the
// sentence "The bootstrap data …". It accepts kinds that it does not know, since machines of other
// providers may.
func Check(data string) string {
	switch {
	case strings.TrimSpace(data) == "":
		return "is empty"
	case len(data) > MaxSize:
		return fmt.Sprintf("has %d bytes, more than the %d that a device accepts: move files into an image or fetch them at boot",
			len(data), MaxSize)
	}
	return syntaxProblem([]byte(data))
}

// Validate returns why the machines of this server could not boot with the userdata, or "". The
// answer completes the sentence "Userdata …". It decides by what it can see without running
// anything: the kind, and the syntax of a cloud-config.
func Validate(data string) string {
	text, err := unpack([]byte(data))
	if err != nil {
		return "is unreadable: " + err.Error()
	}
	if kindOf(text) == unknown && !bytes.HasPrefix(bytes.TrimLeft(text, blank), []byte("{")) {
		return unknownProblem(text)
	}
	if kindOf(text) == cloudConfig {
		if _, err := topLevel(text); err != nil {
			return "is not a valid cloud-config: see " + place(err)
		}
	}
	return ""
}

// syntaxProblem checks a cloud-config that is no template. A template is YAML only once it is
// rendered on the machine. Repeated keys pass: cloud-init accepts them.
func syntaxProblem(text []byte) string {
	if kindOf(text) != cloudConfig {
		return ""
	}
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document)
	switch {
	case errors.Is(err, io.EOF): // comments only
		return ""
	case err != nil:
		return "is not a valid cloud-config: see " + place(err)
	case len(document.Content) > 0 && document.Content[0].Kind != yaml.MappingNode && document.Content[0].Tag != "!!null":
		return "is not a valid cloud-config: its top level is not a mapping"
	}
	return ""
}

var lineNumber = regexp.MustCompile(`line \d+`)

// place returns where the YAML parser failed. The rest of its error repeats the data, which may be
// secret.
func place(err error) string { return cmp.Or(lineNumber.FindString(err.Error()), "its beginning") }
