package manager

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// oldestServer is the first release in which the validation rules of our CRDs are generally
// available.
const oldestServer = "v1.29.0"

// serverTimeout bounds the first request, so that a wrong address is reported soon.
const serverTimeout = 15 * time.Second

// checkServer fails early, with a hint, if the API server is unreachable or too old.
func checkServer(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = serverTimeout
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("using the kubeconfig for %q: %w", cfg.Host, err)
	}
	found, err := c.ServerVersion()
	if err != nil {
		return fmt.Errorf("reaching the API server at %q: %w; check that it runs and that --kubeconfig names the right cluster", cfg.Host, err)
	}
	return checkVersion(cfg.Host, found.GitVersion)
}

func checkVersion(host, found string) error {
	running, err := version.ParseGeneric(found)
	if err != nil {
		return fmt.Errorf("reading the version of the API server at %q: %w", host, err)
	}
	if running.LessThan(version.MustParseGeneric(oldestServer)) {
		return fmt.Errorf("API server at %q runs Kubernetes %s: Drover requires %s or later: upgrade it first", host, found, oldestServer)
	}
	return nil
}
