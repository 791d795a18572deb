package background

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoBrowser means that there is no desktop to open a browser on.
var ErrNoBrowser = errors.New("no desktop")

// OpenBrowser opens an address, which may hold a secret, in the user's browser. All users of a host
// can read arguments of processes, so the browser gets the address from a private file, which the
// caller removes with the returned function.
func OpenBrowser(ctx context.Context, address string) (remove func(), err error) {
	opener, err := exec.LookPath("xdg-open")
	if err != nil || os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return func() {}, ErrNoBrowser
	}
	dir, err := os.MkdirTemp("", "drover-ui-")
	if err != nil {
		return func() {}, fmt.Errorf("opening a browser: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	content := `<!doctype html><meta http-equiv="refresh" content="0; url=` + html.EscapeString(address) + `">`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		remove()
		return func() {}, fmt.Errorf("opening a browser: %w", err)
	}
	if err := exec.CommandContext(ctx, opener, file).Run(); err != nil {
		remove()
		return func() {}, fmt.Errorf("opening a browser: %w", err)
	}
	return remove, nil
}
