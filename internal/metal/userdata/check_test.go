package userdata

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"one megabyte fits":                       {in: strings.Repeat("x", MaxSize)},
		"more than a megabyte":                    {in: strings.Repeat("x", MaxSize+1), want: "has 1048577 bytes, more than the 1048576"},
		"nothing":                                 {in: " \n", want: "is empty"},
		"a cloud-config":                          {in: "#cloud-config\nruncmd: [ls]\n"},
		"a cloud-config without a key":            {in: "#cloud-config\n"},
		"unknown keys":                            {in: "#cloud-config\nfrobnicate: {deeply: [true]}\n"},
		"repeated keys, which cloud-init accepts": {in: "#cloud-config\na: 1\na: 2\n"},
		"literal braces in a cloud-config":        {in: "#cloud-config\nruncmd:\n- echo '{{ x }} {% raw'\n"},
		"invalid YAML, with the place":            {in: "#cloud-config\nruncmd:\n- a\n  b: [\n", want: "is not a valid cloud-config: see line"},
		"a list instead of keys":                  {in: "#cloud-config\n- a\n", want: "is not a valid cloud-config: its top level is not a mapping"},
		"a template, which its reader checks":     {in: "## template: jinja\n#cloud-config\n{% if x %}a: [{% endif %}\n"},
		"a script, which its reader checks":       {in: "#!/bin/sh\necho [\n"},
		"a kind that only its reader knows":       {in: "#cloud-config-archive\n- [\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Check(tc.in); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"nothing":              {in: ""},
		"a script":             {in: "#!/bin/bash\ntrue"},
		"a cloud-config":       {in: "#cloud-config\nruncmd: [ls]\n"},
		"a template":           {in: "## template: jinja\n#cloud-config\nx: {{ v1.y }}\n"},
		"literal braces":       {in: "#cloud-config\nruncmd:\n- 'echo {{ x }}'\n"},
		"Ignition":             {in: `{"ignition":{"version":"3.0.0"}}`},
		"other JSON":           {in: `{"a":1}`},
		"a MIME message":       {in: mimeMessage},
		"compressed":           {in: string(gzipped("#cloud-config\n"))},
		"base64":               {in: encoded([]byte("#cloud-config\na: b\n"))},
		"base64 of mere words": {in: encoded([]byte("please install")), want: `starts with "please install", which is none of`},
		"invalid YAML":         {in: "#cloud-config\nruncmd: [ls\n", want: "is not a valid cloud-config: see line"},
		"a list":               {in: "#cloud-config\n- a\n", want: "is not a valid cloud-config: see line 2"},
		"repeated keys":        {in: "#cloud-config\na: 1\na: 2\n", want: "is not a valid cloud-config: see line 3"},
		"words":                {in: "please install kubernetes", want: `starts with "please install kuber", which is none of`},
		"truncated gzip":       {in: string(gzipped("#cloud-config\n")[:12]), want: "is unreadable: decompressing userdata"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Validate(tt.in); !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckMessagesOmitUserdata(t *testing.T) {
	const data = "#cloud-config\npassword: *topsecret\n"
	for name, got := range map[string]string{"Check": Check(data), "Validate": Validate(data)} {
		if got == "" || strings.Contains(got, "topsecret") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestPartKind(t *testing.T) {
	for name, tt := range map[string]struct {
		text, mimeType string
		want           kind
	}{
		"the type of a plain text":          {"echo hi", "text/x-shellscript", script},
		"a script, whatever the type":       {"#!/bin/sh\n", "text/cloud-config", script},
		"a cloud-config, whatever the type": {"#cloud-config\n", "text/cloud-boothook", cloudConfig},
		"keys with the type only":           {"a: b\n", "text/cloud-config", cloudConfig},
		"a boot hook by type":               {"echo hi", "text/cloud-boothook", bootHook},
		"a boot hook by its first line":     {"#cloud-boothook\n", "text/x-shellscript", bootHook},
		"a template of any type":            {"## template: jinja\n", "text/cloud-config", jinja},
		"an archive":                        {"#cloud-config-archive\n", "", unsupported},
		"an include":                        {"#include-once\n", "text/plain", unsupported},
		"words":                             {"hello", "text/plain", unknown},
		"white space and a byte order mark": {"\ufeff\n ", "", empty},
	} {
		t.Run(name, func(t *testing.T) {
			if got := partKind([]byte(tt.text), tt.mimeType); got != tt.want {
				t.Errorf("kind %d, want %d", got, tt.want)
			}
		})
	}
}
