// Package browsertest drives a real Chromium, headless, for tests and screenshots of the page.
// Start with New.
package browsertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	axe "github.com/drover-dev/drover/web/third_party/axe-core"
)

// ErrNoBrowser means that Chromium is not installed.
var ErrNoBrowser = errors.New("chromium is not installed: run `go run ./hack/build browser`")

// errTimeout means that something did not happen within patience.
var errTimeout = errors.New("timed out")

// patience is how long a page may take to show something on a busy machine.
const patience = time.Minute

// Browser is a tab.
type Browser struct {
	ctx   context.Context
	close func()
}

// New starts a browser with a window of a size. The caller closes it.
func New(ctx context.Context, width, height int) (*Browser, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		if program, err = exec.LookPath("google-chrome"); err != nil {
			return nil, ErrNoBrowser
		}
	}
	dir, err := os.MkdirTemp("", "drover-browser-")
	if err != nil {
		return nil, err
	}
	// Chromium doesn't remove all of its temporary files.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.WindowSize(width, height), chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(patience),
		chromedp.Env("TMPDIR="+dir))
	allocator, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(allocator)
	b := &Browser{ctx: tab, close: func() {
		_ = chromedp.Cancel(tab) // Waits for the browser.
		cancel()
		stop()
		_ = os.RemoveAll(dir)
	}}
	size := emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: int64(height), DeviceScaleFactor: 1, Mobile: width < 600}
	if _, err := chromedp.Call(tab, emulation.SetDeviceMetricsOverride, size); err != nil {
		b.close()
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.close() }

// Do runs actions of chromedp.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(b.ctx, actions...)
}

// Open opens an address. Chromium drops connections when the network of the host changes, as it
// does beside tests of machines, and is then asked again.
func (b *Browser) Open(address string) error {
	for attempt := 1; ; attempt++ {
		err := b.Do(chromedp.Navigate(address))
		if err == nil || attempt == 5 || !strings.Contains(err.Error(), "ERR_NETWORK_CHANGED") {
			return err
		}
	}
}

// Eval decodes the value of a script.
func (b *Browser) Eval(script string, into any) error {
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](script))
	if err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Cookies returns the cookies of the page, with those that scripts can't read.
func (b *Browser) Cookies() ([]*http.Cookie, error) {
	found, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		return nil, err
	}
	out := make([]*http.Cookie, 0, len(found.Cookies))
	for _, c := range found.Cookies {
		out = append(out, &http.Cookie{Name: c.Name, Value: c.Value})
	}
	return out, nil
}

// Text returns what the page shows.
func (b *Browser) Text() string {
	var text string
	if err := b.Eval(`document.body.innerText`, &text); err != nil {
		return err.Error()
	}
	return text
}

// Await waits until a script is true.
func (b *Browser) Await(script string) error {
	for deadline := time.Now().Add(patience); ; {
		ok := false
		err := b.Eval("Boolean("+script+")", &ok)
		if err == nil && ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting until %s: %w; the page shows:\n%s", script, cmp.Or(err, errTimeout), b.Text())
		}
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Theme chooses dark or light, and turns off motion.
func (b *Browser) Theme(name string) error {
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	return err
}

// Screenshot returns the window as a PNG.
func (b *Browser) Screenshot() ([]byte, error) {
	return chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
}

// Overflow lists elements whose text doesn't fit although it isn't cut off on purpose, and says
// whether the page scrolls sideways.
func (b *Browser) Overflow() ([]string, error) {
	var out []string
	err := b.Eval(`(() => {
		const out = [];
		if (document.documentElement.scrollWidth > innerWidth) out.push("the page is " + document.documentElement.scrollWidth + " wide");
		for (const el of document.querySelectorAll("button, a, h1, h2, label, .cell, .pill, .badge, .count")) {
			const style = getComputedStyle(el), box = el.getBoundingClientRect();
			if (box.width === 0 || style.textOverflow === "ellipsis" || el.closest(".visually-hidden, .skip")) continue;
			if (el.scrollWidth > el.clientWidth + 1 && style.display !== "inline" && style.overflow !== "auto") out.push(el.className + ": " + el.textContent.slice(0, 60));
		}
		const boxes = [...document.querySelectorAll(".top > *, .tools > *, .counts > *, .title > *, .line:nth-of-type(-n+8) > .cell")]
			.map((el) => [el, el.getBoundingClientRect()]).filter(([el, r]) => r.width > 0 && r.height > 0);
		for (const [a, x] of boxes) for (const [b, y] of boxes)
			if (a !== b && a.parentElement === b.parentElement && a.compareDocumentPosition(b) & 4 &&
				x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1 && !(innerWidth < 761 && a.closest(".line")))
				out.push("overlap: " + a.className + " and " + b.className);
		return out;
	})()`, &out)
	return out, err
}

// Violations lists what axe finds against the rules of WCAG AA.
func (b *Browser) Violations() ([]string, error) {
	// The policy of the page allows no inline scripts; the debugger is not bound by it.
	if err := b.Eval(axe.Script+";true", new(bool)); err != nil {
		return nil, fmt.Errorf("loading axe: %w", err)
	}
	if err := b.Eval(`window.found = undefined; axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then((r) => {
		window.found = JSON.stringify(r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ": " + n.target + ": " + n.failureSummary)));
	}, (e) => { window.found = JSON.stringify([String(e)]); }); true`, new(bool)); err != nil {
		return nil, err
	}
	if err := b.Await("window.found !== undefined"); err != nil {
		return nil, err
	}
	var text string
	if err := b.Eval("window.found", &text); err != nil {
		return nil, err
	}
	var out []string
	err := json.Unmarshal([]byte(text), &out)
	return out, err
}
