package inventory

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-dev/drover/internal/metal/driver"
)

const hardware = `hostname,bmc_ip,bmc_username,bmc_password,mac,ip_address,netmask,gateway,nameservers,labels,disk
cp-1,10.10.44.1,root,PrZ8W93i,CC:48:3A:00:00:01,10.10.50.2,255.255.254.0,10.10.50.1,8.8.8.8|8.8.4.4,type=cp,/dev/sda
worker-1,,,,CC:48:3A:00:00:02,10.10.50.3,255.255.254.0,10.10.50.1,8.8.8.8,type=worker|plan=server.large,/dev/nvme0n1
`

func TestHardwareCSV(t *testing.T) {
	rows, err := Read([]byte(hardware))
	if err != nil {
		t.Fatal(err)
	}
	if problems, _ := Messages(rows); len(problems) > 0 {
		t.Fatal(problems)
	}
	one := rows[0]
	if one.Name != "cp-1" || one.NICs[0].Address.String() != "10.10.50.2/23" || len(one.NICs[0].Nameservers) != 2 || one.Secrets.BMCPassword != "PrZ8W93i" {
		t.Errorf("got %+v", one)
	}
	if two := rows[1]; two.BMC != nil || two.Labels["plan"] != "server.large" || two.Where != "line 3" {
		t.Errorf("got %+v", two)
	}
}

func TestHardwareCSVReportsEveryProblem(t *testing.T) {
	header := "hostname,bmc_ip,bmc_username,bmc_password,mac,ip_address,netmask,gateway,nameservers,labels,disk,vlan_id\n"
	good := "cp-1,10.0.0.9,root,pw,CC:48:3A:00:00:01,10.0.0.2,255.255.255.0,10.0.0.1,8.8.8.8,a=b,/dev/sda,\n"
	for name, tt := range map[string]struct{ row, want string }{
		"no host name":            {",,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", "line 3: hostname is empty"},
		"an invalid MAC":          {"w,,,,xx,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", `line 3 (w): mac "xx" is not a MAC address`},
		"an invalid address":      {"w,,,,CC:48:3A:00:00:02,10.0.0,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", `line 3 (w): ip_address "10.0.0" is not an address`},
		"a mask with gaps":        {"w,,,,CC:48:3A:00:00:02,10.0.0.3,255.0.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", `line 3 (w): netmask "255.0.255.0" has gaps`},
		"a gateway elsewhere":     {"w,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.9.0.1,8.8.8.8,,/dev/sda,", "line 3 (w): gateway 10.9.0.1 is not in the network 10.0.0.0/24"},
		"half a BMC":              {"w,10.0.0.8,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", "line 3 (w): bmc_ip, bmc_username and bmc_password must be set together"},
		"the address of another":  {"w,,,,CC:48:3A:00:00:02,10.0.0.2,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", "line 3 (w): address 10.0.0.2 is also in line 2"},
		"the MAC of another":      {"w,,,,cc:48:3a:00:00:01,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", "line 3 (w): mac cc:48:3a:00:00:01 is also in line 2"},
		"the name of another":     {"cp-1,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", "line 3 (cp-1): name cp-1 is also in line 2"},
		"the BMC of another":      {"w,10.0.0.9,root,pw,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", "line 3 (w): BMC address 10.0.0.9 is also in line 2"},
		"a label without a value": {"w,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,a,/dev/sda,", `line 3 (w): label "a" is not of the form key=value`},
		"an invalid label":        {"w,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,a=b c,/dev/sda,", `line 3 (w): label "a=b c" is not a valid label`},
		"an invalid VLAN":         {"w,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,9999", "line 3 (w): vlan_id 9999 is not from 0 to 4094"},
		"an invalid name":         {"W_1,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,8.8.8.8,,/dev/sda,", `line 3 (W_1): name "W_1" is not a host name`},
		"too few columns":         {"w,x", "line 3: has 2 columns, want 12"},
		"no nameserver":           {"w,,,,CC:48:3A:00:00:02,10.0.0.3,255.255.255.0,10.0.0.1,,,/dev/sda,", "line 3 (w): nameservers is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := Read([]byte(header + good + tt.row + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			problems, _ := Messages(rows)
			if !strings.Contains(strings.Join(problems, "\n"), tt.want) {
				t.Errorf("got %q, want %q among them", problems, tt.want)
			}
			if strings.Contains(strings.Join(problems, "\n"), "line 2:") {
				t.Errorf("the good row has a problem: %q", problems)
			}
		})
	}
}

func TestFilesThatAreNoInventory(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"nothing":          {"", "no servers"},
		"only a header":    {"hostname,mac,ip_address,netmask,gateway,nameservers,labels,disk\n", "no servers"},
		"unknown columns":  {"hostname,color\n", `unknown column "color"`},
		"a missing column": {"hostname,mac\n", `lacks the column "ip_address"`},
		"a column twice":   {"hostname,hostname\n", `has the column "hostname" twice`},
		"broken quotes":    {"\"hostname\n", "reading the CSV"},
		"a huge file":      {strings.Repeat("x", maxFile+1), "at most"},
		"broken YAML":      {"apiVersion: k0sctl.k0sproject.io/v1beta1\nspec: [", "reading the k0sctl file"},
	} {
		if _, err := Read([]byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

const k0sctl = `apiVersion: k0sctl.k0sproject.io/v1beta1
kind: Cluster
metadata: {name: k0s}
spec:
  hosts:
  - role: controller
    hostname: cp-1
    privateAddress: 10.1.0.2
    labels: {rack: a}
    installFlags: [--debug]
    ssh:
      address: 192.0.2.10
      user: admin
      port: 2222
      keyPath: ~/.ssh/id_ed25519
      bastion: {address: bastion.example.com, user: jump}
  - role: worker
    ssh: {address: 192.0.2.11}
  - role: worker
    localhost: {enabled: true}
`

func TestK0sctlFile(t *testing.T) {
	rows, err := Read([]byte(k0sctl))
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "cp-1", Labels: map[string]string{"rack": "a", "role": "controller"},
		SSH: &driver.SSH{Host: "192.0.2.10", User: "admin", Port: 2222, KeyFile: "~/.ssh/id_ed25519", Bastion: &driver.SSH{Host: "bastion.example.com", User: "jump"}},
	}
	got := rows[0].Spec
	if got.NICs[0].Address.String() != "10.1.0.2/32" {
		t.Errorf("got NICs %+v", got.NICs)
	}
	got.NICs = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if rows[1].Name != "server-192-0-2-11" || rows[1].SSH.User != "root" {
		t.Errorf("got %+v", rows[1].Spec)
	}
	problems, notes := Messages(rows)
	if diff := cmp.Diff([]string{"spec.hosts[2]: ssh is missing: servers are reached with SSH"}, problems[:1]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"spec.hosts[0] (cp-1): installFlags is ignored", "spec.hosts[2]: localhost is ignored"}, notes); diff != "" {
		t.Error(diff)
	}
}

// TestExportedFilesImport reads what was written. Passwords are in neither file.
func TestExportedFilesImport(t *testing.T) {
	remote, _, _ := strings.Cut(k0sctl, "  - role: worker\n    localhost")
	for name, tt := range map[string]struct {
		file  string
		write func(*bytes.Buffer, []Server) error
	}{
		"CSV":    {hardware, func(b *bytes.Buffer, s []Server) error { return WriteCSV(b, s) }},
		"k0sctl": {remote, func(b *bytes.Buffer, s []Server) error { _, err := WriteK0sctl(b, s); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := Read([]byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			var servers []Server
			for _, r := range rows {
				servers = append(servers, Server{Spec: r.Spec})
			}
			var out bytes.Buffer
			if err := tt.write(&out, servers); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "PrZ8W93i") {
				t.Error("a password was exported")
			}
			again, err := Read(out.Bytes())
			if err != nil {
				t.Fatalf("%v in:\n%s", err, out.String())
			}
			if problems, _ := Messages(again); len(problems) > 0 {
				t.Errorf("%q in:\n%s", problems, out.String())
			}
			for i := range again {
				if again[i].SSH != nil && rows[i].SSH.Port == 0 {
					again[i].SSH.Port = 0
				}
				if again[i].SSH != nil && again[i].SSH.Bastion != nil {
					again[i].SSH.Bastion.Port = 0
				}
				if diff := cmp.Diff(rows[i].Spec, again[i].Spec, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestAFileKeepsWhatItDoesNotSay(t *testing.T) {
	s := &Server{Spec: Spec{Name: "one", Plan: "m3.large.x86", Metro: "da", Drained: true, SSH: &driver.SSH{Host: "192.0.2.1", User: "root", HostKey: "ssh-ed25519 AAAA"}}}
	got := s.Merged(Spec{Name: "one", SSH: &driver.SSH{Host: "192.0.2.1", User: "admin"}})
	want := Spec{Name: "one", Plan: "m3.large.x86", Metro: "da", Drained: true, SSH: &driver.SSH{Host: "192.0.2.1", User: "admin", HostKey: "ssh-ed25519 AAAA"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	moved := s.Merged(Spec{Name: "one", SSH: &driver.SSH{Host: "192.0.2.2", User: "admin"}})
	if moved.SSH.HostKey != "" {
		t.Error("a host key was kept for another host")
	}
}

func TestSealer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	one, err := OpenSealer(file)
	if err != nil {
		t.Fatal(err)
	}
	secrets := driver.Secrets{Password: "hunter2", BMCPassword: "calvin"}
	sealed, err := one.Seal("s1", secrets)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("hunter2")) {
		t.Error("the password is readable")
	}
	again, err := OpenSealer(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Open("s1", sealed); err != nil || got != secrets {
		t.Errorf("got %+v and %v", got, err)
	}
	if _, err := again.Open("s2", sealed); err == nil {
		t.Error("secrets of one server were opened for another")
	}
	if _, err := again.Open("s1", sealed[:5]); err == nil {
		t.Error("damaged secrets were opened")
	}
	other, err := OpenSealer(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open("s1", sealed); err == nil {
		t.Error("another key opened the secrets")
	}
	if none, err := one.Seal("s1", driver.Secrets{}); err != nil || none != nil {
		t.Errorf("no secrets were sealed as %x, %v", none, err)
	}
}
