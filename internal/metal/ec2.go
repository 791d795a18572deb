package metal

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
)

// ec2Root lists the top-level items of EC2-style metadata.
func (g *guest) ec2Root() { g.text("meta-data\nuser-data\n") }

// ec2 returns one item, or lists the items below a path.
func (g *guest) ec2() {
	items := g.ec2Items()
	path := strings.Trim(g.r.PathValue("item"), "/")
	if value, found := items[path]; found {
		g.text(value)
		return
	}
	list := below(items, path)
	if len(list) == 0 {
		g.refuse(http.StatusNotFound, "item "+path+" not found")
		return
	}
	g.text(strings.Join(list, "\n"))
}

func (g *guest) text(s string) {
	g.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(g.w, s) //nolint:gosec // Plain text by its content type, for the machine itself.
}

// below returns the names directly below a path.
func below(items map[string]string, path string) []string {
	names := map[string]bool{}
	for item := range items {
		rest, found := strings.CutPrefix("/"+item, strings.TrimSuffix("/"+path, "/")+"/")
		if found {
			name, _, _ := strings.Cut(rest, "/")
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (g *guest) ec2Items() map[string]string {
	m := g.metadata()
	items := map[string]string{
		"instance-id": m.ID, "hostname": m.Hostname, "local-hostname": m.Hostname, "iqn": m.IQN, "plan": m.Plan, "facility": m.Facility, "metro": m.Metro,
		"tags":                                      strings.Join(m.Tags, "\n"),
		"operating-system/slug":                     m.OperatingSystem.Slug,
		"operating-system/distro":                   m.OperatingSystem.Distro,
		"operating-system/version":                  m.OperatingSystem.Version,
		"operating-system/image-tag":                m.OperatingSystem.ImageTag,
		"operating-system/license-activation/state": m.OperatingSystem.LicenseActivation["state"],
		"public-keys":                               strings.Join(m.SSHKeys, "\n"),
		"spot/termination-time":                     terminationText(api.At(g.d.TerminationTime)),
		"public-ipv4":                               "", "public-ipv6": "", "local-ipv4": "",
	}
	for _, a := range m.Network.Addresses {
		if !a.Management {
			continue
		}
		name := "local-ipv4"
		if a.Public {
			name = fmt.Sprintf("public-ipv%d", a.AddressFamily)
		}
		items[name] = a.Address
	}
	return items
}

func terminationText(t *api.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}
