package local

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/endpoint"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

func addAddress(link netlink.Link, p netip.Prefix) error { return guest.AddAddress(link, p) }

// moveAddresses adds and removes addresses of the machine with the given first process, then
// announces the added ones.
func moveAddresses(pid int, add, remove []netip.Addr) error {
	return inNetwork(pid, func() error {
		link, err := netlink.LinkByName(guest.LinkName)
		if err != nil {
			return err
		}
		for _, ip := range remove {
			addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}}
			if err := netlink.AddrDel(link, addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("removing address %s: %w", ip, err)
			}
		}
		for _, ip := range add {
			if err := addAddress(link, netip.PrefixFrom(ip, ip.BitLen())); err != nil {
				return err
			}
			if err := endpoint.Announce(link, ip); err != nil {
				return fmt.Errorf("announcing address %s: %w", ip, err)
			}
		}
		return nil
	})
}

// inNetwork runs f in the network namespace of a process. It discards the thread afterwards, so
// that nothing else runs in that namespace by mistake.
func inNetwork(pid int, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with us.
		ns, err := netns.GetFromPid(pid)
		if err != nil {
			result <- err
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}
