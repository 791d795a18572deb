package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/test/browsertest"
	"github.com/drover-dev/drover/internal/test/fleettest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// openPages is how many pages are open when the cost of many is measured.
const openPages = 50

// measureUI measures the page of fleets whose clusters an API server stores, without a manager.
func measureUI(ctx context.Context, b *bench) error {
	for _, clusters := range []int{10, 1000} {
		if err := b.measurePage(ctx, clusters); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measurePage(ctx context.Context, clusters int) error {
	server, err := kubetest.Run(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := install.Apply(ctx, server.Config, install.Options{}); err != nil {
		return err
	}
	plane, err := inspect.Connect(server.Config)
	if err != nil {
		return err
	}
	if err := withoutWebhooks(ctx, plane.Client); err != nil {
		return err
	}
	if err := store(ctx, plane.Client, clusters); err != nil {
		return err
	}
	file := filepath.Join(b.work, fmt.Sprintf("ui-%d.kubeconfig", clusters))
	if err := clientcmd.WriteToFile(*kubetest.AsKubeconfig(server.Config), file); err != nil {
		return err
	}
	p, err := b.startPage(ctx, file)
	if err != nil {
		return err
	}
	defer p.stop()
	fmt.Fprintf(os.Stdout, "%d clusters\n", clusters)
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := p.update(ctx, plane.Client); err != nil {
		return err
	}
	return p.idle(ctx, b.idle/2)
}

// withoutWebhooks deletes the webhooks, which no manager serves.
func withoutWebhooks(ctx context.Context, c client.Client) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating.Name, validating.Name = config.MutatingWebhooks, config.ValidatingWebhooks
	return errors.Join(client.IgnoreNotFound(c.Delete(ctx, mutating)), client.IgnoreNotFound(c.Delete(ctx, validating)))
}

// store creates clusters with their status.
func store(ctx context.Context, c client.Client, clusters int) error {
	f := fleettest.Fleet{Now: time.Now(), StateOf: fleettest.Healthy}
	for i := range clusters {
		if i < 5 {
			namespace := &corev1.Namespace{}
			namespace.Name = fleettest.Namespace(i)
			if err := c.Create(ctx, namespace); err != nil {
				return err
			}
		}
		cluster := f.Cluster(i)[0].(*anywherev1.Cluster) // the first object is one
		status := cluster.Status
		if err := c.Create(ctx, cluster); err != nil {
			return err
		}
		cluster.Status = status
		if err := c.Status().Update(ctx, cluster); err != nil {
			return err
		}
	}
	return nil
}

// servedPage is a running `drover ui`.
type servedPage struct {
	cmd     *exec.Cmd
	address *url.URL
	browser *browsertest.Browser
	client  *http.Client
}

func (b *bench) startPage(ctx context.Context, kubeconfig string) (*servedPage, error) {
	cmd := exec.CommandContext(ctx, b.drover, "ui", "--no-browser", "--kubeconfig", kubeconfig)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &servedPage{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		p.address, err = url.Parse(strings.TrimSpace(line))
	}
	if err == nil {
		p.browser, err = browsertest.New(ctx, 1280, 800)
	}
	if err != nil {
		p.stop()
	}
	return p, err
}

func (p *servedPage) stop() {
	if p.browser != nil {
		p.browser.Close()
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // it is not needed anymore
}

// open measures a first page, which signs in, and then one of a server that has read the fleet.
func (p *servedPage) open(ctx context.Context) error {
	if err := p.browser.Open(p.address.String()); err != nil {
		return err
	}
	if err := p.browser.Await(`document.querySelector(".line.row")`); err != nil {
		return err
	}
	p.address.Fragment = ""
	began := time.Now()
	if err := p.browser.Open(p.address.String()); err != nil {
		return err
	}
	if err := p.browser.Await(`document.querySelector(".live.live") && document.querySelector(".line.row")`); err != nil {
		return err
	}
	live := time.Since(began)
	var paint float64
	if err := p.browser.Eval(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`, &paint); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "  first paint %.0f ms, live %d ms\n", paint, live.Milliseconds())
	return p.signIn(ctx)
}

// signIn takes the cookie of the browser for requests without one.
func (p *servedPage) signIn(context.Context) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	cookies, err := p.browser.Cookies()
	if err != nil {
		return err
	}
	jar.SetCookies(p.address, cookies)
	p.client = &http.Client{Jar: jar}
	return nil
}

// stream opens a page without a browser.
func (p *servedPage) stream(ctx context.Context) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address.JoinPath("/api/stream").String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("opening a stream: %s", response.Status)
	}
	return response.Body, nil
}

// update measures the snapshot, and what one changed cluster sends.
func (p *servedPage) update(ctx context.Context, c client.Client) error {
	body, err := p.stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	reader := bufio.NewReader(body)
	snapshot, err := sizeOf(reader, "snapshot")
	if err != nil {
		return err
	}
	cluster := &anywherev1.Cluster{}
	key := client.ObjectKey{Namespace: fleettest.Namespace(0), Name: fleettest.Name(0)}
	if err := c.Get(ctx, key, cluster); err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Labels["changed"] = "true"
	if err := c.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return err
	}
	row, err := sizeOf(reader, "row")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "  snapshot %d kB, one changed cluster %d bytes\n", snapshot/1000, row)
	return nil
}

// sizeOf returns the size of the next event of a kind.
func sizeOf(reader *bufio.Reader, kind string) (int, error) {
	size, found := 0, false
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return 0, err
		}
		size += len(line)
		found = found || line == "event: "+kind+"\n"
		if line == "\n" && found {
			return size, nil
		}
		if line == "\n" {
			size = 0
		}
	}
}

// idle measures the server without pages, with one and with many.
func (p *servedPage) idle(ctx context.Context, window time.Duration) error {
	if err := p.browser.Open("about:blank"); err != nil {
		return err
	}
	var open []io.Closer
	defer func() {
		for _, o := range open {
			_ = o.Close()
		}
	}()
	for _, pages := range []int{0, 1, openPages} {
		for len(open) < pages {
			body, err := p.stream(ctx)
			if err != nil {
				return err
			}
			go func() { _, _ = io.Copy(io.Discard, body) }() // it ends with the page
			open = append(open, body)
		}
		before, err := usageOf(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		if err := wait(ctx, window); err != nil {
			return err
		}
		after, err := usageOf(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		share := 100 * float64(after.cpu-before.cpu) / float64(window)
		fmt.Fprintf(os.Stdout, "  %2d idle pages: %.2f %% of a core, %d MB\n", pages, share, after.resident>>20)
	}
	return nil
}
