package manager

import (
	"cmp"
	"fmt"
	"net/url"
	"os"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/packages"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
)

// publicKeyVariable is the variable that deployments of the upstream controller use for the key.
const publicKeyVariable = "EKSA_PUBLIC_KEY"

func (o Options) packagesOptions(c *connections) (packages.Options, error) {
	keys, err := o.packageKeys()
	return packages.Options{
		Workloads: c.Workloads,
		Metadata:  c.Metadata,
		Clusters:  c.clusters,
		Listen:    c.listen,
		Charts:    c.charts,
		Source: source.Options{
			Default: cmp.Or(o.PackageRegistry, registryHost(o.RegistryURL)), Mirrors: o.PackageMirrors, Trust: c.trust, PlainHTTP: o.PlainHTTP,
		},
		Keys:              keys,
		Version:           version.Get().Version,
		KeepBundles:       o.KeepBundles,
		ManagementCluster: o.ManagementCluster,
		Policy:            c.policy,
		Limits:            operation.Limits{Total: o.Operations, PerCluster: o.ClusterSlots},
		WatchFilter:       o.WatchFilter,
		Concurrency:       o.Concurrency,
	}, err
}

// packageKeys returns the keys of files, named after them, and the one of the environment.
func (o Options) packageKeys() (bundle.Keys, error) {
	texts := map[string][]byte{}
	for _, file := range o.PackageKeys {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a key of --package-key: %w", err)
		}
		texts[file] = text
	}
	if text := os.Getenv(publicKeyVariable); text != "" {
		texts["$"+publicKeyVariable] = []byte(text)
	}
	return bundle.ParseKeys(texts)
}

// registryHost returns host and port of a registry's address, or "".
func registryHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
