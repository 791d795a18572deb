package metal

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/metal/api"
)

// validateUserdata tells whether userdata can be made sense of.
func validateUserdata(c *call) (*reply, error) {
	req := api.UserdataValidate{Userdata: c.r.URL.Query().Get("userdata")}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if message := checkUserdataText(req.Userdata); message != "" {
		return nil, unprocessable(message)
	}
	return noContent()
}

// checkUserdataText looks at what can be judged without running it: the kind
// by its first line, and the YAML of a cloud-config that is no template.
func checkUserdataText(data string) string {
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
