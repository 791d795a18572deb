package metal

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/api"
)

func TestOrders(t *testing.T) {
	tests := map[string]struct {
		body     string
		metro    string
		facility string
		wrong    []string
	}{
		"a metro has a default facility": {body: `{"plan":"c3.small.x86","operating_system":"ubuntu_22_04","metro":"da"}`, metro: "da", facility: "da11"},
		"a facility belongs to a metro":  {body: `{"plan":"c3.small.x86","operating_system":"x","facility":["ewr1"]}`, metro: "ny", facility: "ewr1"},
		"a facility may be one string":   {body: `{"plan":"c3.small.x86","operating_system":"x","facility":"ewr1"}`, metro: "ny", facility: "ewr1"},
		"a metro may be a list":          {body: `{"plan":"c3.small.x86","operating_system":"x","metro":["sv"]}`, metro: "sv", facility: "sv15"},
		"any facility will do":           {body: `{"plan":"c3.small.x86","operating_system":"x","facility":["any"]}`, metro: "local", facility: "local1"},
		"a metro wins over a facility":   {body: `{"plan":"c3.small.x86","operating_system":"x","metro":"da","facility":"ewr1"}`, metro: "da", facility: "da11"},
		"what the original provider sends": {
			body:  `{"metro":"da","hostname":"h","billing_cycle":"","plan":"c3.small.x86","operating_system":"ubuntu_20_04","ipxe_script_url":"","tags":["a"],"userdata":"x"}`,
			metro: "da", facility: "da11",
		},
		"nothing at all": {body: `{}`, wrong: []string{"Plan can't be blank", "Operating system can't be blank", "Facility can't be blank"}},
		"an unknown facility": {
			body: `{"plan":"c3.small.x86","operating_system":"x","facility":["xyz9"]}`, wrong: []string{"xyz9 is not a valid facility"},
		},
		"an unknown metro": {body: `{"plan":"c3.small.x86","operating_system":"x","metro":"zz"}`, wrong: []string{"zz is not a valid metro"}},
		"an unknown plan":  {body: `{"plan":"huge","operating_system":"x","metro":"da"}`, wrong: []string{"huge is not a valid plan"}},
		"an iPXE URL without custom_ipxe": {
			body:  `{"plan":"c3.small.x86","operating_system":"ubuntu_22_04","metro":"da","ipxe_script_url":"http://x"}`,
			wrong: []string{"ipxe_script_url can only be used with the operating system custom_ipxe"},
		},
		"a hostname that is none": {
			body: `{"plan":"c3.small.x86","operating_system":"x","metro":"da","hostname":"a_b"}`, wrong: []string{`Hostname "a_b" is invalid`},
		},
		"an unknown billing cycle": {
			body: `{"plan":"c3.small.x86","operating_system":"x","metro":"da","billing_cycle":"never"}`, wrong: []string{"never is not a valid billing cycle"},
		},
		"a tag that is too long": {
			body:  `{"plan":"c3.small.x86","operating_system":"x","metro":"da","tags":["` + strings.Repeat("t", 81) + `"]}`,
			wrong: []string{`Tag "tttttttttttttttttttt"… is too long (maximum is 80 characters)`},
		},
		"a time that is none": {
			body:  `{"plan":"c3.small.x86","operating_system":"x","metro":"da","termination_time":"soon"}`,
			wrong: []string{`termination_time "soon" is not a time such as 2026-07-01T12:00:00Z`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var req api.DeviceCreate
			if err := json.Unmarshal([]byte(tt.body), &req); err != nil {
				t.Fatal(err)
			}
			o, err := orderOf(&req)
			var refusal *Error
			var wrong []string
			if errors.As(err, &refusal) {
				wrong = refusal.Messages
			}
			if diff := cmp.Diff(tt.wrong, wrong); diff != "" {
				t.Errorf("what is wrong (-want +got):\n%s", diff)
			}
			if err == nil && (o.metro != tt.metro || o.facility != tt.facility) {
				t.Errorf("goes to %s in %s, want %s in %s", o.facility, o.metro, tt.facility, tt.metro)
			}
		})
	}
}

func TestUserdataIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		data    string
		refused bool
	}{
		"a script":               {"#!/bin/bash\ntrue", false},
		"a cloud-config":         {"#cloud-config\nruncmd: [ls]\n", false},
		"a template":             {"## template: jinja\n#cloud-config\nx: {{ v1.y }}\n", false},
		"literal braces in it":   {"#cloud-config\nruncmd:\n- 'echo {{ x }}'\n", false},
		"nothing":                {"", false},
		"an ignition":            {`{"ignition":{"version":"3.0.0"}}`, false},
		"broken YAML":            {"#cloud-config\nruncmd: [ls\n", true},
		"words":                  {"please install kubernetes", true},
		"more than can be taken": {"#!" + strings.Repeat("x", maxUserdata), true},
	} {
		if message := checkUserdataText(tt.data); (message != "") != tt.refused {
			t.Errorf("%s: %q, want refused %v", name, message, tt.refused)
		}
	}
}

// FuzzRequests feeds bodies to everything that decodes one: whatever comes,
// it is taken or refused with a reason that a client can be told.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"plan":"c3.small.x86","metro":["da"],"facility":"a,b","tags":null}`, `{"hardware_reservation_id":["next-available"]}`,
		`{"spot_price_max":"0.5","termination_time":"2026-01-01T00:00:00Z"}`, `{"address":"1.2.3.4/31"}`, `{"address":"::1"}`,
		`{"type":"public_ipv4","quantity":3}`, `{"asn":-1,"md5":"Aa1aaaaaaa","deployment_type":"local"}`, `{"servers":[{"plan":"x","quantity":"1"}]}`,
		`{"state":"failed","code":1001,"message":"x"}`, `{"hostname":"\u0000"}`, `{"metro":{"a":1}}`, `{"userdata":"\ud800"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		checks := []func() error{
			func() error {
				var req api.DeviceCreate
				if err := decode(strings.NewReader(body), &req); err != nil {
					return err
				}
				_, err := orderOf(&req)
				return err
			},
			func() error {
				var req api.DeviceUpdate
				if err := decode(strings.NewReader(body), &req); err != nil {
					return err
				}
				return checkUpdate(&req)
			},
			func() error {
				var req api.IPAssign
				if err := decode(strings.NewReader(body), &req); err != nil {
					return err
				}
				_, err := parseAddress(req.Address)
				return err
			},
			func() error {
				var req api.BGPConfigRequest
				if err := decode(strings.NewReader(body), &req); err != nil {
					return err
				}
				return checkBGP(&req)
			},
			func() error { return decode(strings.NewReader(body), &api.CapacityCheck{}) },
			func() error { return decode(strings.NewReader(body), &api.IPReserve{}) },
		}
		for i, check := range checks {
			err := check()
			var refusal *Error
			if err != nil && (!errors.As(err, &refusal) || refusal.Status < 400 || refusal.Status > 499 || len(refusal.Messages) == 0) {
				t.Errorf("check %d of %q: %v is no refusal", i, body, err)
			}
		}
		checkUserdataText(body)
	})
}
