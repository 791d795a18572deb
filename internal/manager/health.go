package manager

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
)

const probeTimeout = 5 * time.Second

// addHealth serves /healthz, which reports that the process is alive, and /readyz, which reports
// that caches are synced and that webhooks respond with a certificate the API server accepts.
func (o Options) addHealth(ctx context.Context, mgr ctrl.Manager, certs *webhookcert.Certs) error {
	synced := &cachesSynced{}
	if err := capi.WarmCaches(ctx, mgr); err != nil {
		return err
	}
	if err := mgr.Add(synced); err != nil {
		return fmt.Errorf("adding the cache check: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", synced.check); err != nil {
		return fmt.Errorf("adding the cache check: %w", err)
	}
	probe := webhookProbe{address: o.probeAddress(), name: o.webhookName(), certs: certs}
	if err := mgr.AddReadyzCheck("webhooks", probe.check); err != nil {
		return fmt.Errorf("adding the webhook check: %w", err)
	}
	return nil
}

// cachesSynced is a runnable, since the manager starts runnables after its caches are synced.
type cachesSynced struct{ done atomic.Bool }

func (c *cachesSynced) Start(context.Context) error {
	c.done.Store(true)
	return nil
}

// NeedLeaderElection makes it run in standby replicas, too.
func (c *cachesSynced) NeedLeaderElection() bool { return false }

func (c *cachesSynced) check(*http.Request) error {
	if !c.done.Load() {
		return errors.New("caches are not synced yet")
	}
	return nil
}

// webhookProbe sends a request to the webhook server as the API server does, with the same trust.
type webhookProbe struct {
	address, name string
	certs         *webhookcert.Certs
}

func (p webhookProbe) check(req *http.Request) error {
	ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: p.certs.Pool(), ServerName: p.name, MinVersion: tls.VersionTLS13},
	}
	answer, err := p.convert(ctx, &http.Client{Transport: transport})
	if err != nil {
		return fmt.Errorf("webhooks don't respond: %w", err)
	}
	if answer.Response == nil || answer.Response.UID != probeUID {
		return errors.New("webhooks don't respond: an empty conversion failed")
	}
	return nil
}

const probeUID = "drover-readiness"

// convert requests the conversion of no objects, which exercises the whole path and has no effect.
func (p webhookProbe) convert(ctx context.Context, c *http.Client) (*apiextensionsv1.ConversionReview, error) {
	review := apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: probeUID, DesiredAPIVersion: "cluster.x-k8s.io/v1beta2",
	}}
	review.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.address+"/convert", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %s", resp.Status)
	}
	answer := &apiextensionsv1.ConversionReview{}
	return answer, json.NewDecoder(resp.Body).Decode(answer)
}

// probeAddress returns the address of this process's own webhooks.
func (o Options) probeAddress() string {
	host, port, _ := splitAddress(o.WebhookAddr) // validated before
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
