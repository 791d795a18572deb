package memory

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

// Second bytes of the part of 127.0.0.0/8 for machines: far from those that hosts use themselves.
const (
	firstSlot = 64
	slots     = 192
)

// network is the part of the loopback network of one home.
type network struct {
	prefix netip.Prefix
	// claim is a listener that reserves the part for one process.
	claim net.Listener
}

// openNetwork returns the part that the home had before, or a free one.
func openNetwork(home string) (*network, error) {
	file := filepath.Join(home, "network")
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(string(data)))
		if err != nil {
			return nil, fmt.Errorf("file %q is damaged: %w", file, err)
		}
		return claim(prefix)
	}
	return newNetwork(home)
}

// newNetwork claims a free part. A part is not reserved while its home is down: if another process
// uses the former part, and nothing of this home has an address in it, another one is used.
func newNetwork(home string) (*network, error) {
	file := filepath.Join(home, "network")
	n, err := findNetwork(home)
	if err != nil {
		return nil, err
	}
	return n, atomicfile.Write(file, []byte(n.prefix.String()+"\n"), 0o600)
}

// findNetwork claims the first free part, starting from one that depends on the home.
func findNetwork(home string) (*network, error) {
	sum := sha256.Sum256([]byte(home))
	return findFrom(int(sum[0]))
}

func findFrom(start int) (*network, error) {
	var last error
	for i := range slots {
		slot := firstSlot + (start+i)%slots
		n, err := claim(netip.PrefixFrom(netip.AddrFrom4([4]byte{127, byte(slot), 0, 0}), 16))
		if err == nil {
			return n, nil
		}
		last = err
	}
	return nil, last
}

// claim claims a part for this process; the kernel releases it on exit.
func claim(prefix netip.Prefix) (*network, error) {
	raw := prefix.Addr().As4()
	raw[2], raw[3] = 255, 254
	l, err := net.Listen("tcp", netip.AddrPortFrom(netip.AddrFrom4(raw), apiPort).String())
	if err != nil {
		return nil, fmt.Errorf("addresses %s are in use by another process: %w", prefix, err)
	}
	return &network{prefix: prefix, claim: l}, nil
}

func (n *network) close() { _ = n.claim.Close() }
