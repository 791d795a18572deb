package server

import (
	"testing"
	"time"
)

// FuzzFacts finds answers of a server that can't be judged. Whoever owns the server chooses them.
func FuzzFacts(f *testing.F) {
	f.Add("arch=x86_64\nos=debian\nosversion=12\ncpus=4\nmemory_kib=8000000\naddress=192.0.2.7/24\ngateway=192.0.2.1\n")
	f.Add("cpus=-1\nmemory_kib=9223372036854775807\ndisk_kib=99999999999999999999\naddress=::/0\nclock=-9223372036854775808\n")
	f.Add("port=\nport=x\nport=99999\nmodule=\nremnant=/\n")
	f.Fuzz(func(t *testing.T, out string) {
		_, problems := judge(parseFacts(out), "one", time.Unix(1_700_000_000, 0))
		for _, p := range problems {
			if p.Check == "" || p.Message == "" || p.Remedy == "" {
				t.Errorf("a problem is incomplete: %+v", p)
			}
		}
	})
}
