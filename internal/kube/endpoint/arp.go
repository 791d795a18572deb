package endpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	arpLength = 42
	// Offsets in a frame.
	kindAt     = 12
	senderAt   = 22
	senderIPAt = 28
)

// arp is a socket for ARP on a link.
type arp struct {
	file    *os.File
	hw      net.HardwareAddr
	address netip.Addr
}

func openARP(link netlink.Link, address netip.Addr) (*arp, error) {
	protocol := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ARP))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
	if err != nil {
		return nil, fmt.Errorf("opening a socket for ARP: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Protocol: protocol}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("binding a socket for ARP to %q: %w", link.Attrs().Name, err)
	}
	return &arp{file: os.NewFile(uintptr(fd), "arp"), hw: link.Attrs().HardwareAddr, address: address}, nil
}

// probe asks who has the address, without claiming it.
func (a *arp) probe() error {
	_, err := a.file.Write(request(a.hw, netip.IPv4Unspecified(), a.address))
	return err
}

// announce tells all neighbors that this machine has the address.
func (a *arp) announce() error {
	_, err := a.file.Write(announcement(a.hw, a.address))
	return err
}

// hear calls f whenever another machine claims the address, until the socket is closed.
func (a *arp) hear(f func()) {
	frame := make([]byte, 128)
	for {
		n, err := a.file.Read(frame)
		if err != nil {
			return
		}
		if claims(frame[:n], a.hw, a.address) {
			f()
		}
	}
}

func (a *arp) close() { a.file.Close() }

// claims reports whether a frame shows that the address is on another machine than that with the
// hardware address.
func claims(frame []byte, own net.HardwareAddr, address netip.Addr) bool {
	return len(frame) >= arpLength && binary.BigEndian.Uint16(frame[kindAt:]) == unix.ETH_P_ARP &&
		bytes.Equal(frame[senderIPAt:senderIPAt+4], address.AsSlice()) && !bytes.Equal(frame[senderAt:senderAt+6], own)
}

// Announce tells the neighbors on a link that this machine has an address, so that none keeps
// sending to the machine that had it before.
func Announce(link netlink.Link, address netip.Addr) error {
	if !address.Is4() {
		return nil // IPv6 neighbors notice by themselves.
	}
	a, err := openARP(link, address)
	if err != nil {
		return err
	}
	defer a.close()
	return a.announce()
}

// announcement returns an ARP request for the sender's own address, which updates the ARP tables of
// all neighbors.
func announcement(hw net.HardwareAddr, address netip.Addr) []byte {
	return request(hw, address, address)
}

func request(hw net.HardwareAddr, from, to netip.Addr) []byte {
	broadcast := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	frame := append(append(make([]byte, 0, arpLength), broadcast...), hw...)
	frame = append(frame, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1)
	frame = append(frame, hw...)
	frame = append(frame, from.AsSlice()...)
	frame = append(frame, 0, 0, 0, 0, 0, 0)
	return append(frame, to.AsSlice()...)
}
