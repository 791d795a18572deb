package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
)

// handoverOf parses the arguments of a command, and returns its flags.
func handoverOf(t *testing.T, args ...string) *handover {
	t.Helper()
	h := &handover{}
	cmd := &cobra.Command{Use: "cluster", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return nil }}
	h.addHandover(cmd, "")
	cmd.Flags().StringSliceVar(&h.with, "with", nil, "")
	cmd.Flags().StringVar(&h.from, "from", "", "")
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHandoverIsResumedWithTheSameFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"cluster one": {"one"},
		"cluster one --kubeconfig m --namespace team --with two,three": {"one", "-n", "team", "-k", "m", "--with", "two", "--with", "three"},
		"cluster one --kubeconfig to --from m":                         {"one", "--from", "m", "-k", "to"},
	} {
		if got := handoverOf(t, args...).again(); got != want {
			t.Errorf("%q is resumed with %q, want %q", args, got, want)
		}
	}
}

func TestAdoptionRequiresASource(t *testing.T) {
	var out bytes.Buffer
	cmd := newAdopt(&ui.IO{Out: &out, Err: &out})
	cmd.SetArgs([]string{"one"})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "--from") {
		t.Errorf("error %v", err)
	}
}
