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

	"github.com/drover-dev/drover/internal/atomicfile"
)

const (
	// conflistName sorts early, and names its owner.
	conflistName = "10-drover.conflist"
	// bridgeName is the link that Pods of a node are attached to.
	bridgeName = "drover0"
)

type object = map[string]any

// conflist is what the container runtime reads: a bridge that is the Pods'
// gateway, addresses from the node's ranges, and host ports.
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
				"type": "bridge", "bridge": bridgeName, "isGateway": true, "ipMasq": false, "hairpinMode": true,
				"ipam": object{"type": "host-local", "ranges": addresses, "routes": routes},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}, "backend": "nftables"},
		},
	}, "", "  ")
}

// writeConflist writes the file if it differs; the runtime notices by itself.
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
		return false, fmt.Errorf("making %q: %w", dir, err)
	}
	return true, atomicfile.Write(path, data, 0o644)
}
