package endpoint

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestAnnouncementIsARequestForTheSender(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	frame := announcement(mac, netip.MustParseAddr("198.18.0.9"))
	if len(frame) != 42 {
		t.Fatalf("a frame of %d bytes, want 42", len(frame))
	}
	sender, target := frame[28:32], frame[38:42]
	if !slices.Equal(sender, target) || !slices.Equal(sender, []byte{198, 18, 0, 9}) || !slices.Equal(frame[6:12], []byte(mac)) {
		t.Errorf("frame % x", frame)
	}
}

func TestClaims(t *testing.T) {
	own, other := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	address, another := netip.MustParseAddr("198.18.0.9"), netip.MustParseAddr("198.18.0.8")
	notARP := announcement(other, address)
	notARP[13] = 0
	for name, tt := range map[string]struct {
		frame []byte
		want  bool
	}{
		"another machine announces it":     {announcement(other, address), true},
		"another machine answers":          {request(other, address, netip.IPv4Unspecified()), true},
		"its own announcement":             {announcement(own, address), false},
		"another address":                  {announcement(other, another), false},
		"a probe claims nothing":           {request(other, netip.IPv4Unspecified(), address), false},
		"who asks for it does not have it": {request(other, another, address), false},
		"a truncated frame":                {announcement(other, address)[:41], false},
		"another protocol":                 {notARP, false},
	} {
		if got := claims(tt.frame, own, address); got != tt.want {
			t.Errorf("%s: claims = %t, want %t", name, got, tt.want)
		}
	}
}

func TestLifetimeEndsBeforeOthersTakeTheAddress(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		left time.Duration
		want int
	}{{GiveUp, 2}, {2 * time.Second, 2}, {1999 * time.Millisecond, 1}, {999 * time.Millisecond, 0}, {-time.Second, -1}} {
		got := lifetime(Grant{Until: now.Add(tt.left)}, now)
		if got != tt.want {
			t.Errorf("%s left: lifetime %d s, want %d s", tt.left, got, tt.want)
		}
		if late := GiveUp - tt.left + time.Duration(got+1)*time.Second; tt.left > 0 && late > Duration {
			t.Errorf("%s left: the kernel may remove the address %s after the renewal, others take it after %s", tt.left, late, Duration)
		}
	}
	if lifetime(Grant{}, now) < 2 {
		t.Error("an address that nobody else can take does not last")
	}
}
