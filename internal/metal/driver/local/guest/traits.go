package guest

import (
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/version"
)

// traits are the properties of the host that the configuration of Kubernetes depends on.
type traits struct {
	cgroups  cgroupVersion
	nftables bool
}

// proxyMode is the mode of kube-proxy where traits allow it.
const proxyMode = "nftables"

// hasNftables reports whether kube-proxy can use nftables here. It requires kernel 5.13, and a
// kernel may lack features that its rules need, so hasNftables loads rules of the same kinds.
func hasNftables() bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil || !newEnough(unix.ByteSliceToString(name.Release[:])) {
		return false
	}
	cmd := exec.Command("nft", "--check", "--file", "-")
	cmd.Stdin = strings.NewReader(proxyRules)
	return cmd.Run() == nil
}

// proxyRules uses each feature that kube-proxy's tables need.
const proxyRules = `table ip drover-probe {
  comment "never made"
  set nodes { type ipv4_addr; }
  map services { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 192.0.2.1 . tcp . 80 : goto endpoints } }
  chain endpoints {
    numgen random mod 2 vmap { 0 : goto endpoint, 1 : goto endpoint }
  }
  chain endpoint {
    meta mark set mark or 0x4000
    meta l4proto tcp dnat to 192.0.2.2:8080
  }
  chain refuse {
    reject
  }
  chain nat {
    type nat hook prerouting priority dstnat;
    fib daddr type local ip daddr @nodes jump endpoints
    ip daddr . meta l4proto . th dport vmap @services
  }
  chain masquerading {
    type nat hook postrouting priority srcnat;
    mark and 0x4000 != 0 mark set mark xor 0x4000 masquerade fully-random
  }
  chain filter {
    type filter hook forward priority filter;
    ct state new jump refuse
  }
}
`

// newEnough parses a kernel release such as 6.18.44-fc.
func newEnough(release string) bool {
	v, err := version.ParseGeneric(release)
	return err == nil && v.AtLeast(version.MustParseGeneric("5.13"))
}
