package request

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// CheckUserdata looks at what can be judged without running it: the kind
// by its first line, and the YAML of a cloud-config that is no template.
func CheckUserdata(data string) string {
	if message := userdataProblem(data); message != "" {
		return message
	}
	first, rest, _ := strings.Cut(data, "\n")
	first = strings.TrimSpace(first)
	switch {
	case data == "", strings.HasPrefix(first, "#!"), strings.HasPrefix(data, "\x1f\x8b"), first == "## template: jinja":
		return ""
	case first == "#cloud-config":
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(rest), &doc); err != nil {
			return fmt.Sprintf("Userdata is not valid YAML: %v", err)
		}
		return ""
	case strings.HasPrefix(first, "{"), strings.HasPrefix(strings.ToLower(first), "content-type: multipart"), strings.HasPrefix(strings.ToLower(first), "mime-version:"):
		return ""
	default:
		return fmt.Sprintf("Userdata starts with %.40q, which is neither #cloud-config nor a script", first)
	}
}
