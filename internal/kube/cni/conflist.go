package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

// conflistName sorts early, and names its owner.
const conflistName = "10-drover.conflist"

type object = map[string]any

// conflist is the configuration of the container runtime: a link between each Pod and its node,
// addresses from the node's ranges, and host ports. Without a bridge, all packets are routed:
// responses of a Service whose Pod is on the client's node return through the node, which must undo
// its translation of the request without the kernel's bridge filter.
func conflist(ranges []netip.Prefix) ([]byte, error) {
	addresses, routes := [][]object{}, []object{}
	for _, r := range ranges {
		addresses = append(addresses, []object{{"subnet": r.String()}})
		everywhere := "::/0"
		if r.Addr().Is4() {
			everywhere = "0.0.0.0/0"
		}
		routes = append(routes, object{"dst": everywhere})
	}
	return json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       "drover",
		"plugins": []object{
			{
				"type": "ptp",
				"ipam": object{"type": "host-local", "ranges": addresses, "routes": routes},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}, "backend": "nftables"},
		},
	}, "", "  ")
}

// writeConflist writes the file if it differs; the runtime watches it.
func writeConflist(dir string, ranges []netip.Prefix) (changed bool, err error) {
	data, err := conflist(ranges)
	if err != nil {
		return false, fmt.Errorf("encoding the network configuration: %w", err)
	}
	path := filepath.Join(dir, conflistName)
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the network configuration: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // every runtime on the node reads it
		return false, fmt.Errorf("creating %q: %w", dir, err)
	}
	return true, atomicfile.Write(path, data, 0o644)
}
