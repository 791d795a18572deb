package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/kube/endpoint"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// setAddresses makes the server respond on exactly these elastic addresses, now and after a reboot.
func setAddresses(ctx context.Context, args []string) error {
	a, err := open(ctx)
	if err != nil {
		return err
	}
	defer a.release()
	wanted, err := parseAddresses(args)
	if err != nil {
		return err
	}
	if a.state.Phase != Done {
		return errors.New("the server is not provisioned")
	}
	before, err := readAddresses()
	if err != nil {
		return err
	}
	if err := a.journal.protect(addressesFile); err != nil {
		return err
	}
	var text strings.Builder
	for _, ip := range wanted {
		fmt.Fprintf(&text, "%s\n", ip)
	}
	if err := atomicfile.Write(addressesFile, []byte(text.String()), 0o644); err != nil {
		return err
	}
	link, err := netlink.LinkByName(a.spec.Link)
	if err != nil {
		return err
	}
	for _, ip := range before {
		if !slices.Contains(wanted, ip) {
			if err := removeAddress(link, ip); err != nil {
				return err
			}
		}
	}
	return addAddresses(link, wanted)
}

func parseAddresses(args []string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, arg := range args {
		ip, err := netip.ParseAddr(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, ip)
	}
	return out, nil
}

func readAddresses() ([]netip.Addr, error) {
	data, err := os.ReadFile(addressesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return parseAddresses(strings.Fields(string(data)))
}

// applyAddresses adds the addresses after a reboot.
func applyAddresses(context.Context, []string) error {
	var spec Spec
	if err := readJSON(specFile, &spec); err != nil {
		return err
	}
	wanted, err := readAddresses()
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(spec.Link)
	if err != nil {
		return err
	}
	return addAddresses(link, wanted)
}

func addAddresses(link netlink.Link, wanted []netip.Addr) error {
	for _, ip := range wanted {
		if err := guest.AddAddress(link, netip.PrefixFrom(ip, ip.BitLen())); err != nil {
			return err
		}
		if err := endpoint.Announce(link, ip); err != nil {
			return fmt.Errorf("announcing %s: %w", ip, err)
		}
	}
	return nil
}

func removeAddress(link netlink.Link, ip netip.Addr) error {
	err := netlink.AddrDel(link, &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}})
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

// dropAddresses removes the elastic addresses and the endpoint from the server.
func dropAddresses() error {
	var spec Spec
	if err := readJSON(specFile, &spec); err != nil {
		return err
	}
	link, err := netlink.LinkByName(spec.Link)
	if err != nil {
		return err
	}
	drop, err := readAddresses()
	if err != nil {
		return err
	}
	if spec.Endpoint.IsValid() {
		drop = append(drop, spec.Endpoint)
	}
	for _, ip := range drop {
		err = errors.Join(err, removeAddress(link, ip))
	}
	return err
}

const (
	runEndpointFile = "/run/drover/endpoint"
	founderFile     = "/run/drover/endpoint-founder"
	adminConfig     = "/etc/kubernetes/admin.conf"
)

// runEndpoint moves the endpoint of a control plane, as on local machines. kubeadm finds the
// address below /run.
func runEndpoint(ctx context.Context, _ []string) error {
	text, err := os.ReadFile(endpointFile)
	if err != nil {
		return err
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return fmt.Errorf("%q is damaged", endpointFile)
	}
	address, err := netip.ParseAddr(fields[0])
	if err != nil {
		return fmt.Errorf("reading %q: %w", endpointFile, err)
	}
	if err := os.MkdirAll(filepath.Dir(runEndpointFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(runEndpointFile, []byte(fields[0]+"\n"), 0o600); err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	return endpoint.Run(ctx, endpoint.Options{
		Name: strings.ToLower(name), Address: address, Link: fields[1], Kubeconfig: adminConfig, Founder: founderFile,
		Log: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
}
