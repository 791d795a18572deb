package verb

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestOfAddsEachVerbOnce(t *testing.T) {
	root := &cobra.Command{Use: "drover"}
	root.AddGroup(&cobra.Group{ID: "clusters"})
	first := Of(root, "clusters", "get")
	if again := Of(root, "clusters", "get"); again != first || len(root.Commands()) != 1 {
		t.Errorf("the second call returns %p, want %p; root has %d commands", again, first, len(root.Commands()))
	}
	if first.GroupID != "clusters" || first.Name() != "get" {
		t.Errorf("command %q in group %q", first.Name(), first.GroupID)
	}
}

func TestVerbsHaveHelp(t *testing.T) {
	for word, text := range helps() {
		if text.short == "" || strings.HasSuffix(text.short, ".") || !strings.HasSuffix(text.long, ".") {
			t.Errorf("%s: short %q, long %q; want a phrase and a sentence", word, text.short, text.long)
		}
	}
}
