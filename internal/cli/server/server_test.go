package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]*driver.SSH{
		"admin@192.168.1.11":        {User: "admin", Host: "192.168.1.11"},
		"root@node.example.com:222": {User: "root", Host: "node.example.com", Port: 222},
		"root@[2001:db8::1]:22":     {User: "root", Host: "2001:db8::1", Port: 22},
		"root@2001:db8::1":          {User: "root", Host: "2001:db8::1"},
		"192.168.1.11":              nil,
		"@host":                     nil,
		"root@":                     nil,
		"root@host:ssh":             nil,
		"root@host:0":               nil,
	} {
		got, err := parseTarget("--ssh", text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: got %v", text, err)
		}
		if diff := cmp.Diff(want, got); want != nil && diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// entryOf applies the flags of a command line to an entry.
func entryOf(t *testing.T, e inventory.Entry, in string, args ...string) (inventory.Entry, error) {
	t.Helper()
	s, err := &spec{}, error(nil)
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
		err = s.apply(cmd, &ui.IO{In: strings.NewReader(in)}, &e)
		return nil
	}}
	s.addFlags(cmd)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return e, err
}

func TestFlagsDescribeAServer(t *testing.T) {
	t.Setenv("HOME", "/home/shepherd")
	got, err := entryOf(t, inventory.Entry{}, "hunter2\n", "--ssh", "admin@192.0.2.1", "--identity-file", "~/.ssh/id", "--bastion", "jump@bastion.example.com", "--label", "rack=a", "--plan", "c3.small.x86", "--password-stdin")
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.Entry{Secrets: driver.Secrets{Password: "hunter2"}}
	want.Plan, want.Labels = "c3.small.x86", map[string]string{"rack": "a"}
	want.SSH = &driver.SSH{User: "admin", Host: "192.0.2.1", KeyFile: "/home/shepherd/.ssh/id", Bastion: &driver.SSH{User: "jump", Host: "bastion.example.com", KeyFile: "/home/shepherd/.ssh/id"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	jumped, err := entryOf(t, got, "sesame\n", "--bastion-password-stdin")
	if err != nil || jumped.Secrets.BastionPassword != "sesame" || jumped.Secrets.Password != "hunter2" {
		t.Errorf("got the secrets %+v, %v", jumped.Secrets, err)
	}
	// What an edit doesn't name stays, and an empty value removes.
	edited, err := entryOf(t, got, "", "--plan", "", "--host-key", "ssh-ed25519 AAAA")
	if err != nil {
		t.Fatal(err)
	}
	if edited.Plan != "" || edited.SSH.HostKey != "ssh-ed25519 AAAA" || edited.SSH.KeyFile != "/home/shepherd/.ssh/id" || edited.Labels["rack"] != "a" {
		t.Errorf("got %+v %+v", edited.Spec, edited.SSH)
	}
	moved, err := entryOf(t, got, "", "--ssh", "admin@192.0.2.2", "--bastion", "")
	if err != nil || moved.SSH.KeyFile == "" || moved.SSH.Bastion != nil || moved.SSH.HostKey != "" {
		t.Errorf("got %+v, %v", moved.SSH, err)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no access":         {[]string{"--plan", "c3.small.x86"}, "add --ssh USER@HOST"},
		"no user":           {[]string{"--ssh", "192.0.2.1"}, "use USER@HOST"},
		"no agent":          {[]string{"--ssh", "a@b", "--ssh-agent"}, "no agent runs"},
		"an invalid label":  {[]string{"--ssh", "a@b", "--label", "x"}, "--label"},
		"no bastion":        {[]string{"--ssh", "a@b", "--bastion-password-stdin"}, "add --bastion USER@HOST"},
		"an empty password": {[]string{"--ssh", "a@b", "--password-stdin"}, "standard input is empty"},
	} {
		if _, err := entryOf(t, inventory.Entry{}, "", tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func sample() api.Server {
	s := api.Server{EffectivePlan: "server.small", HasSecrets: true}
	s.DeviceID, s.User = "3a7c", &api.ServerUser{Hostname: "dev-cp-1", Cluster: "dev", Namespace: "team-a", State: "active"}
	s.Name, s.State, s.Drained = "node-1", inventory.Discovered, true
	s.SSH = &driver.SSH{User: "admin", Host: "192.0.2.1"}
	s.Problems = []driver.Problem{{Check: "swap", Message: "swap is on", Remedy: "swapoff -a"}, {Check: "disk", Message: "full", Remedy: "free some"}}
	return s
}

func TestTableAndDescription(t *testing.T) {
	var out bytes.Buffer
	if err := table(&out, []api.Server{sample()}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Discovered,Drained", "server.small", "192.0.2.1", "dev/dev-cp-1", "swap is on; and 1 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := describe(&out, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"admin@192.0.2.1:22", "stored, encrypted", "dev/dev-cp-1", "team-a", "3a7c, active", "Try: swapoff -a"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestProblemsAreAnError(t *testing.T) {
	var out, errs bytes.Buffer
	if err := printResult(&ui.IO{Out: &out, Err: &errs}, sample()); err == nil || !strings.Contains(err.Error(), "2 problems") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(errs.String(), "Try: swapoff -a") {
		t.Errorf("no remedy in %q", errs.String())
	}
}

func TestImportCompletesAccess(t *testing.T) {
	t.Setenv("HOME", "/home/shepherd")
	csv := "hostname,mac,ip_address,netmask,gateway,nameservers,labels,disk\na,CC:48:3A:00:00:01,192.0.2.5,255.255.255.0,192.0.2.1,192.0.2.1,,/dev/sda\n"
	rows, err := inventory.Read([]byte(csv))
	if err != nil {
		t.Fatal(err)
	}
	o := &importOptions{user: "admin", identityFile: "~/key"}
	if err := o.complete(rows); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&driver.SSH{Host: "192.0.2.5", User: "admin", KeyFile: "/home/shepherd/key"}, rows[0].SSH); diff != "" {
		t.Error(diff)
	}
}

func TestPowerRequiresConfirmation(t *testing.T) {
	for name, tt := range map[string]struct {
		power power
		in    string
		ask   bool
		want  string // part of the error; empty means that it is confirmed
	}{
		"yes":                    {power{question: "This restarts it."}, "yes\n", true, ""},
		"no":                     {power{question: "This restarts it."}, "no\n", true, "canceled"},
		"without a terminal":     {power{question: "This restarts it.", state: "reboot"}, "yes\n", false, "server node-1 (machine dev/dev-cp-1): power reboot requires confirmation: use --yes"},
		"with --yes":             {power{question: "This restarts it.", yes: true}, "", false, ""},
		"what doesn't interrupt": {power{}, "", false, ""},
	} {
		var asked bytes.Buffer
		tt.power.io = &ui.IO{In: strings.NewReader(tt.in), Err: &asked, CanAsk: tt.ask}
		err := tt.power.confirm(sample())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if tt.ask && !strings.Contains(asked.String(), "Server node-1: machine dev/dev-cp-1. This restarts it.") {
			t.Errorf("%s: asked %q", name, asked.String())
		}
	}
}
