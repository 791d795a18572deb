package metalbench

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver/memory"
)

// TestRun makes sure that the measurement works; METALBENCH_DEVICES makes it
// a real one.
func TestRun(t *testing.T) {
	o := Options{Home: t.TempDir(), Driver: memory.New, Devices: 50, Clients: 4, Each: 20 * time.Millisecond}
	if n, err := strconv.Atoi(os.Getenv("METALBENCH_DEVICES")); err == nil {
		o.Devices, o.Clients, o.Each = n, 16, 3*time.Second
	}
	figures, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.Calls == 0 {
			t.Errorf("%s: no call was made", f.Name)
		}
		t.Log(f)
	}
}
