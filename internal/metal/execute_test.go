package metal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// shellDriver runs programs that repeat their input.
type shellDriver struct{ *fakeDriver }

var errFailed = errors.New("exit status 1")

func (shellDriver) Enter(_ context.Context, id string, argv []string, stdio driver.Stdio) error {
	fmt.Fprintf(stdio.Out, "%s %v ", id, argv)
	if _, err := io.Copy(stdio.Err, stdio.In); err != nil {
		return err
	}
	if argv[0] == "false" {
		return errFailed
	}
	return nil
}

func newShells(t *testing.T) *world {
	t.Helper()
	fake := newFake()
	return openWorld(t, Options{Home: Home{Dir: t.TempDir()}, DriverName: "fake", Driver: func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		_, err := fake.new(ctx, c)
		return shellDriver{fake}, err
	}})
}

func TestAdministratorsRunProgramsInMachines(t *testing.T) {
	w := newShells(t)
	d := w.create(order("m"))
	for query, want := range map[string]Execution{
		"argv=cat&argv=-n": {Output: d.ID + ` [cat -n] hello`},
		"argv=false":       {Output: d.ID + ` [false] hello`, Error: errFailed.Error()},
	} {
		var got Execution
		status := w.call(w.admin, "POST", "/drover/v1/devices/"+d.ID+"/exec?"+query, "hello", &got)
		got.Output = strings.TrimSpace(got.Output)
		if status != http.StatusOK || got != want {
			t.Errorf("%s: %d %+v, want %+v", query, status, got, want)
		}
	}
	for name, tt := range map[string]struct {
		token, query string
		want         int
	}{
		"a project's token": {w.token, "argv=cat", http.StatusForbidden},
		"no program":        {w.admin, "", http.StatusUnprocessableEntity},
	} {
		if got := w.call(tt.token, "POST", "/drover/v1/devices/"+d.ID+"/exec?"+tt.query, "hello", nil); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

func TestDriversWithoutShellsRunNothing(t *testing.T) {
	w := newHost(t, 1)
	d := w.create(order("m"))
	if got := w.call(w.admin, "POST", "/drover/v1/devices/"+d.ID+"/exec?argv=true", "", nil); got != http.StatusNotImplemented {
		t.Errorf("got %d, want %d", got, http.StatusNotImplemented)
	}
}

func TestOutputOfProgramsIsLimited(t *testing.T) {
	b := &beginning{}
	for range 3 {
		if n, err := b.Write(make([]byte, maxOutput-1)); n != maxOutput-1 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if b.buffer.Len() != maxOutput {
		t.Errorf("kept %d bytes, want %d", b.buffer.Len(), maxOutput)
	}
}
