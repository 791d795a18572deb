package inventory

import (
	"bytes"
	"testing"
)

// FuzzRead finds files that can't be read without a panic, and servers that pass all checks but
// can't be imported again after an export.
func FuzzRead(f *testing.F) {
	f.Add([]byte(hardware))
	f.Add([]byte(k0sctl))
	f.Add([]byte("hostname,mac,ip_address,netmask,gateway,nameservers,labels,disk\n,,,,,,,\n"))
	f.Add([]byte("hostname,mac\n\"a\nb\",00:00:00:00:00:01\n"))
	f.Add([]byte("apiVersion: k0sctl.k0sproject.io/v1beta1\nspec: {hosts: [{}, null]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := Read(data)
		if err != nil {
			return
		}
		if problems, _ := Messages(rows); len(problems) > 0 {
			return
		}
		var servers []Server
		for _, r := range rows {
			servers = append(servers, Server{Spec: r.Spec})
		}
		var out bytes.Buffer
		if err := WriteCSV(&out, servers); err != nil {
			return // a server that the format can't express
		}
		again, err := Read(out.Bytes())
		if err != nil {
			t.Fatalf("the export can't be read: %v\n%s", err, out.Bytes())
		}
		if len(again) != len(rows) {
			t.Fatalf("%d of %d servers were exported:\n%s", len(again), len(rows), out.Bytes())
		}
		for i := range again {
			if again[i].Name != rows[i].Name {
				t.Errorf("%q became %q:\n%s", rows[i].Name, again[i].Name, out.Bytes())
			}
		}
	})
}
