package cni

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeOwner marks our routes in the kernel. No routing daemon has registered the number.
const routeOwner netlink.RouteProtocol = 79

// syncRoutes replaces our routes with the wanted ones. A failed route doesn't stop the others.
func syncRoutes(want []Route) (changed int, err error) {
	have, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeOwner, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	if err != nil {
		return 0, fmt.Errorf("listing routes: %w", err)
	}
	stale, missing := diffRoutes(fromKernel(have), want)
	var errs []error
	for _, r := range stale {
		errs = append(errs, apply("removing", r, netlink.RouteDel))
	}
	for _, r := range missing {
		errs = append(errs, apply("adding", r, netlink.RouteReplace))
	}
	return len(stale) + len(missing), errors.Join(errs...)
}

// diffRoutes returns the routes to remove and to add. A route with a new gateway is only added,
// which replaces it.
func diffRoutes(have, want []Route) (stale, missing []Route) {
	wanted, there := map[netip.Prefix]bool{}, map[Route]bool{}
	for _, r := range want {
		wanted[r.To] = true
	}
	for _, r := range have {
		there[r] = true
		if !wanted[r.To] {
			stale = append(stale, r)
		}
	}
	for _, r := range want {
		if !there[r] {
			missing = append(missing, r)
		}
	}
	return stale, missing
}

func fromKernel(routes []netlink.Route) []Route {
	var out []Route
	for _, r := range routes {
		via, ok := netip.AddrFromSlice(r.Gw)
		if !ok || r.Dst == nil {
			continue
		}
		addr, _ := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		out = append(out, Route{To: netip.PrefixFrom(addr.Unmap(), bits), Via: via.Unmap()})
	}
	return out
}

func apply(doing string, r Route, do func(*netlink.Route) error) error {
	err := do(&netlink.Route{
		Dst:      &net.IPNet{IP: r.To.Addr().AsSlice(), Mask: net.CIDRMask(r.To.Bits(), r.To.Addr().BitLen())},
		Gw:       r.Via.AsSlice(),
		Protocol: routeOwner,
		Table:    unix.RT_TABLE_MAIN,
	})
	if err != nil {
		return fmt.Errorf("%s the route to Pods in %s through %s: %w", doing, r.To, r.Via, err)
	}
	return nil
}
