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

// defaultASN is the private autonomous system that projects announce addresses from.
const defaultASN = 65000

// packetOptions takes secrets from the environment only: arguments of a process can be read by
// everybody on the machine. The names of the variables are those that operators of the former
// provider have in their manifests.
func (o Options) packetOptions(shared capi.Shared, secrets client.Reader) packet.Options {
	return packet.Options{
		Credentials:  access.Credentials{Token: os.Getenv(access.TokenKey), URL: o.MetalAPIURL},
		BGP:          cluster.BGP{ASN: asn(os.Getenv("METAL_LOCAL_ASN")), Password: os.Getenv("METAL_BGP_PASS")},
		PollInterval: o.PacketPollInterval,
		WatchFilter:  o.WatchFilter,
		Concurrency:  o.Concurrency,
		UserAgent:    "drover/" + version.Get().Version,
		Workloads:    shared.Workloads,
		Secrets:      secrets,
		Metadata:     shared.Metadata,
	}
}

func asn(text string) int {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil && n > 0 {
		return int(n)
	}
	return defaultASN
}
