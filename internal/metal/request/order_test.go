package request

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/api"
)

func TestParseOrder(t *testing.T) {
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
		"a key that is none": {
			body:  `{"plan":"c3.small.x86","operating_system":"x","metro":"da","ssh_keys":[{"label":"mine","key":"ssh-rsa not base64"}]}`,
			wrong: []string{`SSH key "mine" is not a valid public key`},
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
			o, err := OrderOf(&req)
			var refusal *Error
			var wrong []string
			if errors.As(err, &refusal) {
				wrong = refusal.Messages
			}
			if diff := cmp.Diff(tt.wrong, wrong); diff != "" {
				t.Errorf("what is wrong (-want +got):\n%s", diff)
			}
			if err == nil && (o.Metro != tt.metro || o.Facility != tt.facility) {
				t.Errorf("goes to %s in %s, want %s in %s", o.Facility, o.Metro, tt.facility, tt.metro)
			}
		})
	}
}

func TestCheckUserdata(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"a script":                   {"#!/bin/bash\ntrue", ""},
		"nothing":                    {"", ""},
		"invalid YAML":               {"#cloud-config\nruncmd: [ls\n", "Userdata is not a valid cloud-config: see line "},
		"words":                      {"please install", `Userdata starts with "please install", which is none of `},
		"more than the server keeps": {"#!" + strings.Repeat("x", maxUserdata), "Userdata is too long (4194306 bytes"},
	} {
		if got := CheckUserdata(tt.data); !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
