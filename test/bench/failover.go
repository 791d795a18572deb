package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

const threeControlPlanes = 3

// healthCheck replaces control plane machines with an unresponsive node.
const healthCheck = `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: %[1]s}
spec:
  clusterName: %[1]s
  selector: {matchLabels: {cluster.x-k8s.io/control-plane: ""}}
  checks:
    unhealthyNodeConditions:
    - {type: Ready, status: Unknown, timeoutSeconds: 5}
`

// measureFailover powers off the machine that holds the endpoint of a cluster with three control
// plane machines.
func measureFailover(ctx context.Context, b *bench) error {
	c, began, err := b.localCluster(ctx, "failover", threeControlPlanes, 0)
	if err != nil {
		return err
	}
	if err := b.apply(ctx, fmt.Sprintf(healthCheck, c.Name)); err != nil {
		return err
	}
	if err := await(ctx, "three control planes", func() bool { return healthy(ctx, c) }); err != nil {
		return err
	}
	row("three control planes healthy", "%5.1f s", time.Since(began).Seconds())

	holder, api, err := endpoint(ctx, c)
	if err != nil {
		return err
	}
	began = time.Now()
	if err := b.powerOff(ctx, holder); err != nil {
		return err
	}
	outage, err := measureOutage(ctx, api)
	if err != nil {
		return err
	}
	row("endpoint's machine off until the API responds", "%5.1f s", outage.Seconds())
	if err := await(ctx, "a new machine", func() bool { return !hasDevice(ctx, c, holder) && healthy(ctx, c) }); err != nil {
		return err
	}
	row("until three are healthy again", "%5.1f s", time.Since(began).Seconds())
	_, err = b.run(ctx, "kubectl", "delete", "clusters.cluster.x-k8s.io", c.Name, "--timeout=5m")
	return err
}

// healthy reports whether exactly three control plane machines are ready.
func healthy(ctx context.Context, c *clustertest.Cluster) bool {
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: c.Name + "-control-plane"}, kcp); err != nil {
		return false
	}
	ready := kcp.Status.ReadyReplicas
	return ready != nil && *ready == threeControlPlanes && len(c.Machines(ctx)) == threeControlPlanes
}

func hasDevice(ctx context.Context, c *clustertest.Cluster, id string) bool {
	for _, m := range c.Machines(ctx) {
		if strings.HasSuffix(m.Spec.ProviderID, id) {
			return true
		}
	}
	return false
}

// endpoint returns the device that holds the address of the API, and the API's URL.
func endpoint(ctx context.Context, c *clustertest.Cluster) (device, api string, err error) {
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
	cluster.SetKind("PacketCluster")
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: c.Name}, cluster); err != nil {
		return "", "", err
	}
	device, _, _ = unstructured.NestedString(cluster.Object, "status", "endpoint", "deviceID")
	host, _, _ := unstructured.NestedString(cluster.Object, "spec", "controlPlaneEndpoint", "host")
	if device == "" || host == "" {
		return "", "", fmt.Errorf("PacketCluster %q does not report the holder of its endpoint", c.Name)
	}
	return device, "https://" + host + ":6443/readyz", nil
}

// powerOff powers off a device.
func (b *bench) powerOff(ctx context.Context, device string) error {
	c, err := admin.Open(metal.Home{Dir: b.metalHome()})
	if err != nil {
		return err
	}
	return c.Do(ctx, http.MethodPost, "/metal/v1/devices/"+device+"/actions", map[string]string{"type": "power_off"}, nil)
}

// shutdownTime is longer than a machine takes to shut down.
const shutdownTime = time.Minute

// measureOutage polls until the API has failed and recovered. A machine that is powered off shuts
// down, and may hand the endpoint over without a failed request.
func measureOutage(ctx context.Context, api string) (time.Duration, error) {
	probe := newProbe()
	var down time.Time
	for start := time.Now(); ; {
		began := time.Now()
		ok := answers(ctx, probe, api)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case !ok && down.IsZero():
			down = began
		case ok && !down.IsZero():
			return time.Since(down), nil
		case began.Sub(start) > shutdownTime && down.IsZero():
			return 0, nil
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// newProbe returns a client that opens a new connection each time, like new clients.
func newProbe() *http.Client {
	return &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // any response counts
	}}
}

func answers(ctx context.Context, probe *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	res, err := probe.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// apply applies a manifest to the plane.
func (b *bench) apply(ctx context.Context, manifest string) error {
	file := filepath.Join(b.work, "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return err
	}
	_, err := b.run(ctx, "kubectl", "apply", "-f", file)
	return err
}
