package web

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/browsertest"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

// screen is the page of a fleet in a browser.
type screen struct {
	*browsertest.Browser
	*world

	t      *testing.T
	server *Server
	// stop ends the server, and address is where it was.
	stop    func()
	address string
}

// open serves a fleet and opens it in a browser of a size.
func open(t *testing.T, w *world, width, height int) *screen {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	b, err := browsertest.New(t.Context(), width, height)
	if errors.Is(err, browsertest.ErrNoBrowser) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	s := &screen{Browser: b, world: w, t: t}
	s.serve("127.0.0.1:0")
	s.must(b.Theme("light"))
	s.must(b.Open(s.server.URL()))
	s.await(`document.querySelector("main.fleet")`)
	return s
}

// serve starts the server at an address.
func (s *screen) serve(address string) {
	s.t.Helper()
	listener, err := net.Listen("tcp", address)
	s.must(err)
	s.server, err = New(s.view.plane, listener)
	s.must(err)
	s.server.view.now = s.view.now
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.server.Serve(ctx); err != nil {
			s.t.Error(err)
		}
	}()
	s.address = listener.Addr().String()
	s.stop = func() { cancel(); <-done }
	s.t.Cleanup(s.stop)
}

func (s *screen) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) await(script string) {
	s.t.Helper()
	s.must(s.Await(script))
}

// accept checks the layout and the accessibility of what is shown.
func (s *screen) accept(what string) {
	s.t.Helper()
	s.fits(what)
	violations, err := s.Violations()
	s.must(err)
	for _, v := range violations {
		s.t.Errorf("%s: %s", what, v)
	}
}

// fits checks the layout of what is shown.
func (s *screen) fits(what string) {
	s.t.Helper()
	overflow, err := s.Overflow()
	s.must(err)
	for _, v := range overflow {
		s.t.Errorf("%s: %s", what, v)
	}
}

// press types keys into the page.
func (s *screen) press(keys string) { s.t.Helper(); s.must(s.Do(chromedp.KeyEvent(keys))) }

// TestPageOfAThousandClusters finds, reads and changes a cluster in a large fleet.
func TestPageOfAThousandClusters(t *testing.T) {
	s := open(t, newPlane(t, fleet(oneBroken).Objects(1000), nil), 1280, 800)
	s.await(`document.querySelector(".count b").textContent === "1000"`)
	var lines int
	s.must(s.Eval(`document.querySelectorAll(".line.row").length`, &lines))
	if lines > 60 {
		t.Errorf("%d of 1,000 lines are rendered, want only the visible ones", lines)
	}
	s.accept("1,000 clusters")

	s.must(s.Eval(`document.querySelector(".scroll").scrollTop = 30000; true`, new(bool)))
	s.await(`[...document.querySelectorAll(".line.row")].some((r) => r.getAttribute("aria-rowindex") > 650)`)
	s.must(s.Eval(`document.querySelector(".scroll").scrollTop = 0; true`, new(bool)))
	s.await(`document.querySelector(".line.row").getAttribute("aria-rowindex") === "2"`)

	t.Run("one changed cluster renders one row", func(t *testing.T) {
		var id string
		s.must(s.Eval(`document.querySelectorAll(".line.row")[3].dataset.id`, &id))
		parts := strings.Split(id, "/")
		s.must(s.Eval(`window.changed = new Set(); new MutationObserver((all) => all.forEach((m) => {
			const row = (m.target.nodeType === 1 ? m.target : m.target.parentElement).closest(".line.row");
			if (row) window.changed.add(row.dataset.id);
		})).observe(document.querySelector(".body"), {subtree: true, childList: true, characterData: true, attributes: true}); true`, new(bool)))
		c := s.live(parts[1], parts[2])
		c.Status.Workers = "3/4"
		if err := s.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s.await(`window.changed.size > 0`)
		var changed []string
		s.must(s.Eval(`[...window.changed]`, &changed))
		if len(changed) != 1 || changed[0] != id {
			t.Errorf("rows %v were rendered, want only the changed one", changed)
		}
	})
	t.Run("the keyboard finds the broken cluster and its reason", func(t *testing.T) {
		// The debugger sends a key and its character apart, so that "/" would also be typed.
		s.must(s.Eval(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true})); true`, new(bool)))
		s.await(`document.activeElement.type === "search"`)
		s.press("no server")
		s.await(`document.querySelectorAll(".line.row").length === 1 && location.search === "?q=no+server"`)
		s.press(kb.Escape)
		s.press("j")
		s.await(`document.querySelector(".line.selected")`)
		s.press(kb.Enter)
		s.await(`document.querySelector("main.cluster .why")`)
		if text := s.Text(); !strings.Contains(text, "no server of plan c3.medium.x86 is free") || !strings.Contains(text, "Free a server") {
			t.Errorf("the page doesn't say why and what to do: %s", text)
		}
		s.accept("a broken cluster")
		s.must(s.Do(chromedp.NavigateBack()))
		s.await(`document.querySelector("input[type=search]")?.value === "no server"`)
	})
	t.Run("a restarted server continues the page after a new sign-in", func(t *testing.T) {
		address := s.address
		s.stop()
		s.await(`document.querySelector(".live.lost")`)
		s.serve(address)
		s.await(`document.querySelector("main.empty")?.textContent.includes("drover ui")`)
		s.must(s.Eval(`location.href = "`+s.server.URL()+`"; true`, new(bool)))
		s.await(`document.querySelector(".live.live") && document.querySelector(".count b").textContent === "1000"`)
	})
}

// oneBroken has one broken cluster among many.
func oneBroken(i int) fleettest.State {
	if i == 137 {
		return fleettest.WithoutServer
	}
	return fleettest.Ready
}

// TestPageActs changes a cluster through dialogs.
func TestPageActs(t *testing.T) {
	s := open(t, newPlane(t, fleet(fleettest.OnFire).Objects(12), nil), 1280, 900)
	s.must(s.Do(chromedp.Click(`[data-id="drover/team-batch/fra-batch-01"] a`)))
	s.await(`document.querySelector("main.cluster .actions button")`)
	button := func(name string) {
		t.Helper()
		s.must(s.Eval(`[...document.querySelectorAll(".actions button")].find((b) => b.textContent === "`+name+`").click(); true`, new(bool)))
		s.await(`document.querySelector("dialog[open]")`)
	}
	// The plane in memory grants nothing by itself, so all actions are denied.
	button("Scale")
	s.await(`document.querySelector("dialog .notice")?.textContent.includes("drover-cluster-creator")`)
	s.accept("an action that isn't allowed")
	s.press(kb.Escape)
	s.await(`!document.querySelector("dialog[open]")`)
	button("Kubeconfig")
	s.await(`document.querySelector("dialog .notice")?.textContent.includes("may not read the kubeconfig")`)
	s.press(kb.Escape)
	s.grant()
	s.must(s.Do(chromedp.Reload()))
	s.await(`document.querySelector("main.cluster .actions button")`)
	s.must(s.Eval(`[...document.querySelectorAll(".actions button")].find((b) => b.textContent === "Kubeconfig").click(); true`, new(bool)))
	s.await(`document.querySelector("main .failure")?.textContent.includes("no API server yet")`) // shown, not downloaded
	button("Scale")
	s.await(`document.querySelector("dialog input[type=number]")`)
	s.must(s.Eval(`{ const i = document.querySelector("dialog input[type=number]"); i.value = "6"; i.dispatchEvent(new Event("input", {bubbles: true})); } true`, new(bool)))
	s.await(`document.querySelector("dialog .preview td b")?.textContent === "6"`)
	if text := s.Text(); !strings.Contains(text, "drover kubectl patch") {
		t.Errorf("the dialog shows no command: %s", text)
	}
	s.accept("the plan of an action")
	s.must(s.Do(chromedp.Click(`dialog button[type=submit]`)))
	s.await(`document.querySelector(".notice.good")`)
	if got := *s.live("team-batch", "fra-batch-01").Spec.WorkerNodeGroupConfigurations[0].Count; got != 6 {
		t.Errorf("the count is %d, want 6", got)
	}
	s.must(s.Eval(`document.querySelector("button[aria-label='History of ingress']").click(); true`, new(bool)))
	s.await(`document.querySelector("dialog[open] td .small")`)
	s.accept("the history of an add-on")
	s.must(s.Eval(`document.querySelector("dialog[open] td .small").click(); true`, new(bool)))
	s.await(`document.querySelector("dialog .preview")?.textContent.includes("drover addon rollback ingress --to 1")`)
	s.must(s.Do(chromedp.Click(`dialog button[type=submit]`)))
	s.await(`document.querySelector(".notice.good")?.textContent.includes("rolled out")`)
	if got := s.liveAddOn("ingress").Spec.Version; got != "4.11.3" {
		t.Errorf("the version is %s, want the earlier one", got)
	}
	button("Delete")
	s.await(`document.querySelector("dialog .field input")`)
	var disabled bool
	s.must(s.Eval(`document.querySelector("dialog button[type=submit]").disabled`, &disabled))
	if !disabled {
		t.Error("a cluster can be deleted without typing its name")
	}
	s.must(s.Do(chromedp.SendKeys(`dialog .field input`, "fra-batch-01"), chromedp.Click(`dialog button[type=submit]`)))
	s.await(`document.querySelector(".notice.good")?.textContent.includes("Deletion")`)
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "team-batch", Name: "fra-batch-01"}, &anywherev1.Cluster{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("reading the deleted cluster: %v", err)
	}
}

// TestPagesFitEveryScreen checks every page: the layout on a desk and on a phone, and accessibility
// in both themes.
func TestPagesFitEveryScreen(t *testing.T) {
	w := newPlane(t, fleet(fleettest.OnFire).Objects(50), nil)
	pages := map[string]string{
		"/": ".line.row", "/addons": ".matrix .line", "/machines": ".machines .line", "/git": ".repository td", "/plane": "main.page .failure",
		"/clusters/drover/team-batch/fra-batch-01": ".diagram .node", "/clusters/drover/team-web/gone": "main.empty .failure",
		"/clusters/drover/team-ml/nrt-ml-01": "section[aria-label=Git]",
		"/?group=namespace":                  ".line.group", "/?q=nothing-has-this": ".empty",
	}
	desk := open(t, w, 1280, 800)
	for _, theme := range []string{"light", "dark"} {
		desk.must(desk.Theme(theme))
		for path, shown := range pages {
			desk.visit(path, shown)
			desk.accept(path + " in the " + theme + " theme")
		}
	}
	desk.stop()
	phone := open(t, w, 390, 844)
	for path, shown := range pages {
		phone.visit(path, shown)
		phone.fits(path + " on a phone")
	}
}

// visit opens a page and waits until something is shown.
func (s *screen) visit(path, shown string) {
	s.t.Helper()
	s.must(s.Open("http://" + s.address + path))
	s.await(`document.querySelector("` + shown + `")`)
}

// TestEmptyPageTeaches shows how to get a first cluster.
func TestEmptyPageTeaches(t *testing.T) {
	s := open(t, newPlane(t, nil, nil), 1280, 800)
	if text := s.Text(); !strings.Contains(text, "drover create cluster") {
		t.Errorf("an empty fleet shows %s", text)
	}
	s.accept("an empty fleet")
	expire(s.world, s.server.view)
	s.await(`document.querySelector("h1").textContent === "Your credentials have expired"`)
	s.accept("expired credentials")
}

// TestPageReachesNoOtherHost reads what the browser has requested for the page.
func TestPageReachesNoOtherHost(t *testing.T) {
	s := open(t, newPlane(t, fleet(fleettest.Healthy).Objects(3), nil), 1280, 800)
	s.await(`document.querySelector(".line.row")`)
	var foreign []string
	s.must(s.Eval(`performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin + "/"))`, &foreign))
	if len(foreign) > 0 {
		t.Errorf("the page requested %v", foreign)
	}
}
