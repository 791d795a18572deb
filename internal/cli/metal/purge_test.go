package metal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
)

func TestDescribeNamesTheClusters(t *testing.T) {
	of := func(cluster string) api.Device {
		return api.Device{Tags: []string{"capp:cluster-id:" + cluster, "capp:namespace:farm"}}
	}
	for want, devices := range map[string][]api.Device{
		"0 machines": nil,
		"1 machine":  {{}},
		"4 machines, 1 of cluster farm/goats, 2 of cluster farm/herd": {of("herd"), of("goats"), of("herd"), {}},
	} {
		if got := describe(devices); got != want {
			t.Errorf("described as %q, want %q", got, want)
		}
	}
}

func TestPurgeRequiresConfirmation(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, "y\n": false, "no\n": false, "": false, "\n": false} {
		h := metal.Home{Dir: filepath.Join(t.TempDir(), "metal")}
		if err := os.MkdirAll(h.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := h.WriteEndpoint(metal.Endpoint{URL: "http://127.0.0.1:1", Driver: "memory"}); err != nil {
			t.Fatal(err)
		}
		var talk bytes.Buffer
		o := PurgeOptions{Home: h}
		err := o.Confirm(t.Context(), &ui.IO{In: strings.NewReader(answer), Err: &talk, CanAsk: true})
		if (err == nil) != want {
			t.Errorf("after %q: %v", answer, err)
		}
		if !strings.Contains(talk.String(), h.Dir) {
			t.Errorf("asked %q", talk.String())
		}
	}
}
