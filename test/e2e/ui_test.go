package e2e

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/drover-dev/drover/internal/test/browsertest"
)

// TestPageOfARealPlane follows clusters of simulated machines in a browser: as an administrator,
// and as a creator who sees one namespace.
func TestPageOfARealPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a plane with simulated machines, and a browser")
	}
	t.Parallel()
	f := &gitFleet{plane: newPlane(t)}
	f.serveMetal()
	f.must("up", "--metal", "memory")
	f.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}")
	f.must("kubectl", "annotate", "--overwrite", "secret", "local-metal", "--namespace=eksa-system", "clusters.anywhere.eks.amazonaws.com/credentials-namespaces=team-a")
	kubeconfig := filepath.Join(t.TempDir(), "creator.kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(f.must("create", "user", "creator", "--namespace=team-a").stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := f.page()
	admin.await(`document.body.innerText.includes("drover create cluster")`)

	f.apply(teamSpec("dev", 1))
	f.apply(strings.ReplaceAll(teamSpec("secret", 1), "team-a", "default"))
	admin.await(`document.querySelector('[data-id="drover/team-a/dev"]') && document.querySelector('[data-id="drover/default/secret"]')`)
	admin.await(`document.querySelector('[data-id="drover/team-a/dev"] .cp')?.innerText.includes("1/1")`)

	creator := f.page("--kubeconfig", kubeconfig)
	creator.await(`document.querySelector('[data-id="drover/team-a/dev"]') && document.querySelector(".scope").innerText.includes("only namespace team-a")`)
	if text := creator.Text(); strings.Contains(text, "secret") {
		t.Errorf("the creator sees:\n%s", text)
	}

	admin.must(chromedp.Click(`[data-id="drover/team-a/dev"] a`))
	admin.await(`[...document.querySelectorAll(".actions button")].find((b) => b.textContent === "Scale")?.click() ?? document.querySelector("dialog[open] input[type=number]")`)
	admin.await(`(() => { const i = document.querySelector("dialog input[type=number]"); i.value = "2"; return i.dispatchEvent(new Event("input", {bubbles: true})); })()`)
	admin.await(`document.querySelector("dialog .preview td b")?.textContent === "2"`)
	admin.must(chromedp.Click(`dialog button[type=submit]`))
	admin.await(`document.querySelector(".notice.good")`)
	f.await("the cluster has two workers", func() bool { return f.get(devCluster, "{.spec.workerNodeGroupConfigurations[0].count}") == "2" })
	f.await("the change is audited", func() bool { return strings.Contains(f.must("audit", "dev").stdout, "Scaled") })

	admin.must(chromedp.Click(`nav a[href="/plane"]`))
	admin.await(`["checks pass", "expires in", " MB"].every((part) => document.querySelector("main").innerText.includes(part))`)

	kill(t, f.status().component("kube-apiserver").PID)
	f.awaitReady()
	f.await("the API server has read its roles", func() bool {
		return f.drover("kubectl", "label", "--namespace=team-a", devCluster, "tier=gold").code == 0
	})
	admin.must(chromedp.Click(`.brand`))
	admin.await(`(() => { const i = document.querySelector("input[type=search]"); i.value = "tier=gold"; i.dispatchEvent(new Event("input", {bubbles: true})); return document.querySelectorAll(".line.row").length === 1; })()`)
}

// window is a browser with the page of a plane.
type window struct {
	*browsertest.Browser

	t *testing.T
}

// page runs `drover ui` and opens what it prints.
func (f *gitFleet) page(args ...string) *window {
	f.t.Helper()
	cmd := f.command(append([]string{"ui", "--no-browser"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			f.t.Errorf("drover ui ends with %v", err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	b, err := browsertest.New(f.t.Context(), 1280, 800)
	if errors.Is(err, browsertest.ErrNoBrowser) && os.Getenv("CI") == "" {
		f.t.Skip(err)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(b.Close)
	if err := b.Open(strings.TrimSpace(address)); err != nil {
		f.t.Fatal(err)
	}
	return &window{Browser: b, t: f.t}
}

func (w *window) await(script string) {
	w.t.Helper()
	if err := w.Await(script); err != nil {
		w.t.Fatal(err)
	}
}

func (w *window) must(actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := w.Do(actions...); err != nil {
		w.t.Fatal(err)
	}
}
