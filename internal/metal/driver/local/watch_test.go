package local

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// huge is the size of a file that root on a machine has extended: it has the files of the first
// process by pidfd_getfd. Whoever reads it into memory is killed.
const huge = 1 << 40

// inbox is a sink that fails as often as asked.
type inbox struct {
	failures int
	messages []string
}

func (i *inbox) Report(_ string, e driver.Event) error {
	if i.failures > 0 {
		i.failures--
		return errors.New("no space left on device")
	}
	i.messages = append(i.messages, e.Message)
	return nil
}

func newMachine(t *testing.T) (*machine, *inbox) {
	t.Helper()
	in := &inbox{}
	d := &Driver{sink: in, log: slog.New(slog.DiscardHandler)}
	return &machine{driver: d, id: "x", dir: t.TempDir()}, in
}

func (m *machine) append(t *testing.T, file, content string) {
	t.Helper()
	f, err := os.OpenFile(m.path(file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) extend(t *testing.T, file string) {
	t.Helper()
	m.append(t, file, "")
	if err := os.Truncate(m.path(file), huge); err != nil {
		t.Fatal(err)
	}
}

func TestHugeFilesOfAMachineAreNotReadIntoMemory(t *testing.T) {
	m, in := newMachine(t)
	for _, file := range []string{guest.ExitFile, guest.EventsFile, guest.ConsoleFile} {
		m.extend(t, file)
	}
	if why := m.exitReason(); len(why) > maxReason {
		t.Errorf("the machine ended because of %d bytes", len(why))
	}
	m.append(t, guest.ConsoleFile, "the last words\n")
	if tail := m.consoleTail(); !strings.HasSuffix(tail, "the last words") || len(tail) > 500 {
		t.Errorf("the console ends with %d bytes: %q", len(tail), tail)
	}
	m.append(t, guest.EventsFile, "\n"+`{"message":"alive"}`+"\n")
	m.deliver()
	if !slices.Equal(in.messages, []string{"alive"}) {
		t.Errorf("events %q", in.messages)
	}
}

func TestExitReasons(t *testing.T) {
	for content, want := range map[string]string{"": "", guest.ExitReboot: guest.ExitReboot, guest.ExitPowerOff: guest.ExitPowerOff} {
		m, _ := newMachine(t)
		m.append(t, guest.ExitFile, content)
		if got := m.exitReason(); got != want {
			t.Errorf("%q is read as %q", content, got)
		}
	}
}

func TestOversizedAndInvalidEventsAreSkipped(t *testing.T) {
	m, in := newMachine(t)
	lines := []string{
		`{"message":"first"}`, `{"message":"` + strings.Repeat("x", maxEvent) + `"}`, `{"message":"second"}`, "not JSON", `{"message":"third"}`, `{"message":"incompl`,
	}
	m.append(t, guest.EventsFile, strings.Join(lines, "\n"))
	m.deliver()
	m.append(t, guest.EventsFile, `ete"}`+"\n")
	m.deliver()
	m.deliver()
	if want := []string{"first", "second", "third", "incomplete"}; !slices.Equal(in.messages, want) {
		t.Errorf("events %.200q, want %q", in.messages, want)
	}
}

func TestEventsThatMetalCouldNotRecordAreDeliveredAgain(t *testing.T) {
	m, in := newMachine(t)
	for n := range 3 {
		m.append(t, guest.EventsFile, fmt.Sprintf("{\"message\":\"%d\"}\n", n))
	}
	in.failures = 1
	m.deliver()
	m.deliver()
	if want := []string{"0", "1", "2"}; !slices.Equal(in.messages, want) {
		t.Errorf("events %q, want %q", in.messages, want)
	}
	if !exists(filepath.Join(m.dir, offsetFile)) {
		t.Error("the offset is not recorded")
	}
}
