package machine

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/tags"
)

func device(name string, addresses ...api.IPAssignment) api.Device {
	return api.Device{
		Hostname: name, ID: "4b1d-" + name, State: "active", User: "root", Plan: &api.Plan{Slug: "c3.small.x86"}, Metro: &api.Metro{Code: "da"},
		Project: &api.Href{Href: "/projects/p1"}, CreatedAt: api.At(time.Unix(1000, 0)), IPAddresses: addresses,
	}
}

func management(address string, public bool) api.IPAssignment {
	a := api.IPAssignment{}
	a.Address, a.AddressFamily, a.Public, a.Management = address, 4, public, true
	return a
}

func TestTable(t *testing.T) {
	elastic := management("198.18.0.9", true)
	elastic.Management = false
	booting := device("b")
	booting.State, booting.ProvisioningPercentage = "provisioning", 40
	machines := []listed{
		{Device: device("a", elastic, management("198.18.0.2", true), management("10.128.0.2", false)), Owner: &tags.Owner{Namespace: "farm", Cluster: "herd"}},
		{Device: booting},
	}
	var out bytes.Buffer
	if err := table(&out, machines, time.Unix(1090, 0)); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"NAME", "STATE", "CLUSTER", "PUBLIC", "PRIVATE", "PLAN", "METRO", "ID", "AGE"},
		{"a", "active", "farm/herd", "198.18.0.2", "10.128.0.2", "c3.small.x86", "da", "4b1d-a", "1m30s"},
		{"b", "provisioning", "40%", "-", "-", "-", "c3.small.x86", "da", "4b1d-b", "1m30s"},
	}
	var got [][]string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFilter(t *testing.T) {
	owned := listed{Device: device("a"), Owner: &tags.Owner{Namespace: "farm", Cluster: "herd"}}
	free := listed{Device: device("b")}
	for name, tt := range map[string]struct {
		filter      filter
		owned, free bool
	}{
		"nothing is asked for":         {filter{}, true, true},
		"a cluster by its name":        {filter{cluster: "herd"}, true, false},
		"a cluster by its full name":   {filter{cluster: "farm/herd"}, true, false},
		"a cluster of other namespace": {filter{cluster: "city/herd"}, false, false},
		"a project":                    {filter{project: "p1"}, true, true},
		"another project":              {filter{project: "p2"}, false, false},
		"both":                         {filter{project: "p1", cluster: "herd"}, true, false},
	} {
		if a, b := tt.filter.matches(owned), tt.filter.matches(free); a != tt.owned || b != tt.free {
			t.Errorf("%s: matches %v and %v, want %v and %v", name, a, b, tt.owned, tt.free)
		}
	}
}

func TestSSHArguments(t *testing.T) {
	d := device("a", management("198.18.0.2", true))
	for name, tt := range map[string]struct {
		options sshOptions
		command []string
		want    []string
	}{
		"a shell":              {sshOptions{}, nil, []string{"root@198.18.0.2"}},
		"a command with flags": {sshOptions{}, []string{"ls", "-l"}, []string{"root@198.18.0.2", "ls", "-l"}},
		"a user and a key":     {sshOptions{user: "ada", identity: "key"}, nil, []string{"-i", "key", "ada@198.18.0.2"}},
	} {
		argv, err := tt.options.arguments(d, tt.command)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, argv[7:]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := (sshOptions{}).arguments(device("a"), nil); err == nil || !strings.Contains(err.Error(), "no address yet") {
		t.Errorf("a machine without an address: %v", err)
	}
}
