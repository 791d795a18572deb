package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinks(t *testing.T) {
	text := "See [one](a.md), [a `b`\nc](b.md#part) and `[no](link)`.\n```text\n[nor](this)\n```\n[![image](i.png)](c.md)\n"
	if diff := cmp.Diff([]string{"a.md", "b.md#part", "i.png", "c.md"}, Links(text)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestAnchors(t *testing.T) {
	text := "# A page\n\n## Use `drover up`, or not\n\n```sh\n# a comment\n```\n### PacketCluster (`pcl`)\n"
	want := map[string]bool{"a-page": true, "use-drover-up-or-not": true, "packetcluster-pcl": true}
	if diff := cmp.Diff(want, Anchors(text)); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
}
