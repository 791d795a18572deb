package request

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
)

// FuzzRequests decodes arbitrary bodies: each is accepted as a valid value or rejected with a
// reason for the client.
func FuzzRequests(f *testing.F) {
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		for name, read := range map[string]func(*testing.T, string) error{
			"a device": readOrder, "a change": readUpdate, "an address": readAddress, "a block": readBlock, "BGP": readBGP, "a key": readKey,
			"capacity": func(_ *testing.T, body string) error { return Decode(strings.NewReader(body), &api.CapacityCheck{}) },
			"an action": func(_ *testing.T, body string) error {
				return Decode(strings.NewReader(body), &api.DeviceAction{})
			},
		} {
			err := read(t, body)
			var refusal *Error
			if err != nil && (!errors.As(err, &refusal) || refusal.Status < 400 || refusal.Status > 499 || len(refusal.Messages) == 0) {
				t.Errorf("%q as %s: %v is no refusal", body, name, err)
			}
		}
	})
}

func readOrder(t *testing.T, body string) error {
	t.Helper()
	var req api.DeviceCreate
	if err := Decode(strings.NewReader(body), &req); err != nil {
		return err
	}
	o, err := OrderOf(&req)
	if err != nil {
		return err
	}
	if _, found := catalog.FindPlan(o.Plan); !found {
		t.Errorf("%q is an order for plan %q", body, o.Plan)
	}
	if _, found := catalog.FindMetro(o.Metro); !found && len(req.HardwareReservationID) == 0 {
		t.Errorf("%q is an order for metro %q", body, o.Metro)
	}
	if len(req.Hostname) > 253 || !utf8.ValidString(req.Hostname) || strings.ContainsAny(req.Hostname, " \n/\x00") {
		t.Errorf("%q is an order for host %q", body, req.Hostname)
	}
	return nil
}

func readUpdate(_ *testing.T, body string) error {
	var req api.DeviceUpdate
	if err := Decode(strings.NewReader(body), &req); err != nil {
		return err
	}
	return CheckUpdate(&req)
}

func readAddress(t *testing.T, body string) error {
	t.Helper()
	var req api.IPAssign
	if err := Decode(strings.NewReader(body), &req); err != nil {
		return err
	}
	p, err := ParseAddress(req.Address)
	if err == nil && (!p.IsValid() || p.Masked() != p) {
		t.Errorf("%q is %v", req.Address, p)
	}
	return err
}

func readBlock(t *testing.T, body string) error {
	t.Helper()
	var req api.IPReserve
	if err := Decode(strings.NewReader(body), &req); err != nil {
		return err
	}
	b, err := BlockOf(&req, func(kind string) bool { return kind == "public_ipv4" || kind == "global_ipv4" })
	if err == nil && b.Metro == "" && req.Type != "global_ipv4" {
		t.Errorf("%q is a block in no metro", body)
	}
	return err
}

func readBGP(_ *testing.T, body string) error {
	var req api.BGPConfigRequest
	if err := Decode(strings.NewReader(body), &req); err != nil {
		return err
	}
	return CheckBGP(&req)
}

func readKey(t *testing.T, body string) error {
	t.Helper()
	var req api.SSHKeyCreate
	if err := Decode(strings.NewReader(body), &req); err != nil {
		return err
	}
	err := CheckSSHKey(req.Label, req.Key)
	if err == nil && strings.ContainsAny(req.Key, "\r\n") {
		t.Errorf("%q is a key of several lines", req.Key)
	}
	return err
}
