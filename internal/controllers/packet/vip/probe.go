package vip

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/drover-dev/drover/internal/base/pki"
)

// probeTimeout bounds one check.
const probeTimeout = 2 * time.Second

// Target is an API server to check.
type Target struct {
	// Cluster is whose CA must have signed the certificate of the server.
	Cluster ctrlclient.ObjectKey
	// Name must be in the certificate of the server.
	Name string
	// Addresses are the addresses to try at once; one suffices.
	Addresses []string
	// Port is its port.
	Port int32
}

// probe checks the selected candidates in parallel.
func (c *Controller) probe(ctx context.Context, s *scope, selected func(candidate) bool) {
	var group sync.WaitGroup
	results := make([]*bool, len(s.candidates))
	for i, one := range s.candidates {
		if !selected(one) || !one.active {
			continue
		}
		group.Go(func() {
			ok := c.Prober.Healthy(ctx, s.target(one))
			results[i] = &ok
		})
	}
	group.Wait()
	for i, ok := range results {
		if ok == nil {
			continue
		}
		device := s.candidates[i].device
		known := s.recollection.health[device]
		if *ok {
			s.recollection.health[device] = known.succeeded()
		} else {
			s.recollection.health[device] = known.failed()
		}
	}
}

// target returns the API server on a machine, at the machine's own addresses.
func (s *scope) target(one candidate) Target {
	endpoint := s.packetCluster.Spec.ControlPlaneEndpoint
	t := Target{Cluster: ctrlclient.ObjectKeyFromObject(s.cluster), Name: endpoint.Host, Port: endpoint.Port}
	for _, a := range s.machines[one.device].Status.Addresses {
		ip := net.ParseIP(a.Address)
		if ip.To4() != nil && a.Address != endpoint.Host && (a.Type == clusterv1.MachineExternalIP || a.Type == clusterv1.MachineInternalIP) {
			t.Addresses = append(t.Addresses, a.Address)
		}
	}
	return t
}

// HTTPProber checks API servers with HTTPS.
type HTTPProber struct {
	// Secrets read the CAs of clusters, in order: a cache, then the API server for those that it
	// lacks.
	Secrets []ctrlclient.Reader
}

// Healthy reports whether the server answers at one of its addresses, with a certificate of the
// cluster and without a server error. A server that requires authentication is healthy.
func (p HTTPProber) Healthy(ctx context.Context, target Target) bool {
	pool := p.authority(ctx, target.Cluster)
	if pool == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answers := make(chan bool, len(target.Addresses))
	for _, address := range target.Addresses {
		go func() { answers <- respondsAt(ctx, pool, target, address) }()
	}
	for range target.Addresses {
		if <-answers {
			return true
		}
	}
	return false
}

func respondsAt(ctx context.Context, pool *x509.CertPool, target Target, address string) bool {
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: target.Name, MinVersion: tls.VersionTLS12},
	}
	url := "https://" + net.JoinHostPort(address, strconv.Itoa(int(target.Port))) + "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode < http.StatusInternalServerError
}

// authority returns the CA of a cluster, or nil if there is none yet.
func (p HTTPProber) authority(ctx context.Context, cluster ctrlclient.ObjectKey) *x509.CertPool {
	ca := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.ClusterCA)}
	for _, reader := range p.Secrets {
		if reader.Get(ctx, key, ca) == nil {
			break
		}
	}
	pool, err := pki.Pool(ca.Data[secret.TLSCrtDataName])
	if err != nil {
		return nil
	}
	return pool
}
