package manager

import (
	"os"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/controllers/packet"
	"github.com/drover-dev/drover/internal/controllers/packet/cluster"
	"github.com/drover-dev/drover/internal/metal/access"
)

// defaultASN is the private autonomous system number of projects.
const defaultASN = 65000

// packetOptions reads secrets only from the environment: arguments of a process are visible to
// every user of the machine. The variables have the names that manifests of the upstream provider
// use.
func (o Options) packetOptions(shared capi.Shared, secrets client.Reader) packet.Options {
	return packet.Options{
		Credentials:  o.metalCredentials(),
		BGP:          cluster.BGP{ASN: asn(os.Getenv("METAL_LOCAL_ASN")), Password: os.Getenv("METAL_BGP_PASS")},
		PollInterval: o.PacketPollInterval,
		WatchFilter:  o.WatchFilter,
		Concurrency:  o.Concurrency,
		UserAgent:    "drover/" + version.Get().Version,
		Workloads:    shared.Workloads,
		Secrets:      secrets,
		Metadata:     shared.Metadata,
		Hooks:        shared.Hooks,
	}
}

// metalCredentials are those of clusters without their own.
func (o Options) metalCredentials() access.Credentials {
	return access.Credentials{Token: os.Getenv(access.TokenKey), URL: o.MetalAPIURL, CA: os.Getenv(access.CAKey)}
}

func asn(text string) int {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil && n > 0 {
		return int(n)
	}
	return defaultASN
}
