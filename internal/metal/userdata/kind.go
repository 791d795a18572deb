package userdata

import (
	"bytes"
	"fmt"
	"strings"
)

// kind is what userdata is, as its first line says.
type kind int

const (
	unknown kind = iota
	empty
	message
	jinja
	script
	cloudConfig
	bootHook
	ignition
	// unsupported is a kind that cloud-init knows and local machines skip.
	unsupported
)

// blank is what may come before the first line.
const blank = "\ufeff\r\n\t "

// kindOf returns the kind of a text without compression or base64.
func kindOf(text []byte) kind {
	text = bytes.TrimLeft(text, blank)
	switch word := firstWord(text); {
	case len(text) == 0:
		return empty
	case isMessage(text):
		return message
	case isTemplate(text):
		return jinja
	case bytes.HasPrefix(text, []byte("#!")):
		return script
	case word == "#cloud-config":
		return cloudConfig
	case word == "#cloud-boothook":
		return bootHook
	case strings.HasPrefix(word, "#include"), word == "#upstart-job", word == "#part-handler",
		word == "#cloud-config-archive", word == "#cloud-config-jsonp":
		return unsupported
	case bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text[:min(len(text), 4096)], []byte(`"ignition"`)):
		return ignition
	}
	return unknown
}

// partKind returns the kind of a part of a message. Its MIME type decides unless the text starts as
// a message, template, script or cloud-config.
func partKind(text []byte, mimeType string) kind {
	found := kindOf(text)
	switch found {
	case empty, message, jinja, script, cloudConfig:
		return found
	case bootHook, ignition, unsupported, unknown:
	}
	switch {
	case mimeType == "text/cloud-config":
		return cloudConfig
	case mimeType == "text/cloud-boothook":
		return bootHook
	case mimeType == "text/x-shellscript" && found != bootHook:
		return script
	}
	return found
}

func isMessage(text []byte) bool {
	head := strings.ToLower(string(text[:min(len(text), 64)]))
	return strings.HasPrefix(head, "content-type: multipart/") || strings.HasPrefix(head, "mime-version:")
}

func firstWord(text []byte) string {
	words := bytes.Fields(firstLine(text))
	if len(words) == 0 {
		return ""
	}
	return string(words[0])
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// unknownProblem says what is wrong with a text of no known kind. It repeats only the beginning,
// since userdata may hold secrets.
func unknownProblem(text []byte) string {
	line := firstLine(bytes.TrimLeft(text, blank))
	return fmt.Sprintf("starts with %q, which is none of #cloud-config, ## template: jinja, #! or a MIME message",
		line[:min(len(line), 20)])
}
