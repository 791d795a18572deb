package git

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestAddresses(t *testing.T) {
	for raw, want := range map[string]address{
		"https://example.com/a/b.git":       {scheme: "https", host: "example.com", path: "/a/b.git"},
		"https://example.com:8443/a":        {scheme: "https", host: "example.com", port: "8443", path: "/a"},
		"http://127.0.0.1:3000/a":           {scheme: "http", host: "127.0.0.1", port: "3000", path: "/a"},
		"http://localhost/a":                {scheme: "http", host: "localhost", path: "/a"},
		"http://[::1]:80/a":                 {scheme: "http", host: "::1", port: "80", path: "/a"},
		"ssh://git@example.com/a/b.git":     {scheme: "ssh", user: "git", host: "example.com", path: "/a/b.git"},
		"ssh://example.com:2222/~jane/a":    {scheme: "ssh", host: "example.com", port: "2222", path: "~jane/a"},
		"git@example.com:a/b.git":           {scheme: "ssh", user: "git", host: "example.com", path: "a/b.git"},
		"example.com:/srv/a.git":            {scheme: "ssh", host: "example.com", path: "/srv/a.git"},
		"git@[2001:db8::1]:a/b.git":         {scheme: "ssh", user: "git", host: "2001:db8::1", path: "a/b.git"},
		"https://example.com/a%20directory": {scheme: "https", host: "example.com", path: "/a directory"},
	} {
		got, err := parseAddress(raw)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(address{})); diff != "" || err != nil {
			t.Errorf("%s: error %v: %s", raw, err, diff)
		}
	}
}

func TestInvalidAddressesAreRejectedWithoutQuotingThem(t *testing.T) {
	for raw, says := range map[string]string{
		"":                                    "required",
		"https://jane:hunter2@example.com/a":  "credentials",
		"https://hunter2@example.com/a":       "credentials",
		"ssh://git:hunter2@example.com/a":     "credentials",
		"http://example.com/hunter2":          "not encrypted",
		"http://127.0.0.1.example.com/a":      "not encrypted",
		"ftp://example.com/hunter2":           "unsupported scheme",
		"file:///srv/hunter2":                 "unsupported scheme",
		"ext::sh -c hunter2":                  "spaces",
		"/srv/hunter2":                        "no scheme",
		"./hunter2":                           "no scheme",
		"https:///hunter2":                    "no host",
		"https://example.com":                 "no path",
		"https://example.com/":                "no path",
		"ssh://-oProxyCommand=hunter2/a":      "dash",
		"ssh://-l@example.com/hunter2":        "dash",
		"-oProxyCommand=hunter2:a":            "dash",
		"git@example.com:-hunter2":            "dash",
		"https://example.com/a?token=hunter2": "query",
		"https://example.com/a#hunter2":       "query or a fragment",
		"https://example.com/a\nhunter2":      "control characters",
		"https://example.com/a%0ahunter2":     "control characters",
		"https://example.com:port/hunter2":    "malformed",
		"https://%zz/hunter2":                 "malformed",
	} {
		_, err := parseAddress(raw)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v, want %q", raw, err, says)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, raw := range []string{"https://example.com/a", "ssh://git@example.com:22/~a", "git@[::1]:a/b", "http://localhost/%0a", "a@b:c"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		at, err := parseAddress(raw)
		if err != nil {
			return
		}
		if at.scheme == schemeHTTP && !at.isLoopback() {
			t.Errorf("%q is not encrypted", raw)
		}
		for _, part := range []string{at.host, at.user, at.path} {
			if strings.HasPrefix(part, "-") || strings.ContainsAny(part, "\x00\n\r") {
				t.Errorf("%q has a part %q", raw, part)
			}
		}
		if at.scheme != schemeSSH {
			if again, err := parseAddress(at.url()); err != nil || again.host != at.host || again.port != at.port {
				t.Errorf("%q became %q: %+v, error %v", raw, at.url(), again, err)
			}
		}
	})
}

func TestValidateReportsAllProblems(t *testing.T) {
	private, public := gittest.NewKey(t, "ed25519", "hunter2")
	hosts := append([]byte("example.com "), public...)
	for name, test := range map[string]struct {
		remote Remote
		want   []string
	}{
		"valid https": {Remote{URL: "https://example.com/a", Branch: "main"}, nil},
		"valid ssh": {Remote{
			URL: "git@example.com:a", Branch: "a/b",
			Credentials: Credentials{PrivateKey: private, Passphrase: "hunter2", KnownHosts: hosts},
		}, nil},
		"nothing": {Remote{}, []string{"url is required", "branch is required"}},
		"ssh without anything": {
			Remote{URL: "git@example.com:a", Branch: "a b"},
			[]string{`branch "a b"`, "requires a private key", "requires known hosts"},
		},
		"ssh with nonsense": {
			Remote{URL: "git@example.com:a", Branch: "main", Credentials: Credentials{
				Password: "hunter2", PrivateKey: []byte("hunter2"), KnownHosts: []byte("hunter2"),
			}},
			[]string{"password and CA are for https", "reading private key", "reading known hosts"},
		},
		"wrong passphrase": {Remote{URL: "git@example.com:a", Branch: "main", Credentials: Credentials{
			PrivateKey: private, Passphrase: "hunter", KnownHosts: hosts,
		}}, []string{"reading private key"}},
		"https with nonsense": {
			Remote{URL: "https://example.com/a", Branch: "-x", Credentials: Credentials{
				Username: "a:b", CA: []byte("hunter2"), PrivateKey: private,
			}},
			[]string{`branch "-x"`, "for ssh, not for https", "password is required", "colon", "reading CA"},
		},
		"branch that escapes": {Remote{URL: "https://example.com/a", Branch: "../../x"}, []string{"not a valid name"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.remote.Validate()
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				if test.want != nil || err != nil {
					t.Fatalf("error %v", err)
				}
				return
			}
			if len(invalid.Problems) != len(test.want) {
				t.Fatalf("problems %q, want %q", invalid.Problems, test.want)
			}
			for i, problem := range invalid.Problems {
				if !strings.Contains(problem, test.want[i]) || strings.Contains(problem, "hunter") {
					t.Errorf("problem %q, want %q", problem, test.want[i])
				}
			}
		})
	}
}

func TestCredentialsAreNeverPrinted(t *testing.T) {
	remote := Remote{URL: "https://example.com/a", Branch: "main", Credentials: Credentials{Password: "hunter2", Passphrase: "hunter2", PrivateKey: []byte("hunter2")}}
	encoded, err := json.Marshal(remote)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{
		fmt.Sprint(remote), fmt.Sprintf("%+v", remote), fmt.Sprintf("%#v", remote), fmt.Sprintf("%v", &remote), string(encoded),
	} {
		if strings.Contains(printed, "hunter2") || !strings.Contains(printed, "redacted") {
			t.Errorf("printed %s", printed)
		}
	}
}
