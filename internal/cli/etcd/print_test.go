package etcd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

func TestMembersTable(t *testing.T) {
	var out bytes.Buffer
	if err := membersTable(&out, []etcd.Member{
		{Name: "cp-0", Address: "https://192.0.2.1:2379", Role: etcd.Leader, DBSize: 5 << 20, DBInUse: 1 << 20, RaftIndex: 7, Alarms: []string{"NOSPACE"}, Health: etcd.Healthy},
		{Name: "cp-1", Address: "https://192.0.2.2:2379", Health: "doesn't respond: timeout"},
	}); err != nil {
		t.Fatal(err)
	}
	want := `NAME   ADDRESS                  ROLE     SIZE      IN USE    RAFT INDEX   ALARMS    HEALTH
cp-0   https://192.0.2.1:2379   leader   5.0 MiB   1.0 MiB   7            NOSPACE   healthy
cp-1   https://192.0.2.2:2379   -        0.0 MiB   0.0 MiB   0            -         doesn't respond: timeout
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotTable(t *testing.T) {
	var out bytes.Buffer
	if err := snapshotTable(&out, []storage.Entry{{Name: "20260102T030405Z", Size: 1 << 20, Location: "/b"}, {Name: "20260101T030405Z", Location: "oci://r/s"}}); err != nil {
		t.Fatal(err)
	}
	want := `SNAPSHOT           SIZE      LOCATION
20260102T030405Z   1.0 MiB   /b
20260101T030405Z   -         oci://r/s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyThePlanesRegistryGetsItsPassword(t *testing.T) {
	r := plane.Registry{URL: "https://127.0.0.1:5000", Address: "198.18.0.1:5000"}
	for host, want := range map[string]bool{"127.0.0.1:5000": true, "198.18.0.1:5000": true, "127.0.0.1:5001": false, "registry.example.com": false, "": false} {
		if got := serves(r, host); got != want {
			t.Errorf("%q: %t, want %t", host, got, want)
		}
	}
	if serves(plane.Registry{URL: "https://127.0.0.1:5000"}, "") {
		t.Error("an empty address is that of a registry without another one")
	}
}

func TestUsageErrorsComeBeforeConnections(t *testing.T) {
	t.Setenv("DROVER_HOME", t.TempDir())
	for line, want := range map[string]string{
		"snapshot dev":                   `required flag(s) "to" not set`,
		"snapshot dev --to d --keep -1":  "--keep -1 is negative",
		"snapshots dev":                  `required flag(s) "from" not set`,
		"restore dev":                    `required flag(s) "from" not set`,
		"members":                        "accepts 1 arg(s)",
		"members dev --kubeconfig /none": "reading kubeconfig",
		"defrag dev --kubeconfig /none":  "reading kubeconfig",
		"restore dev --from d -k /none":  "reading kubeconfig",
		"snapshot dev --to d -k /none":   "reading kubeconfig",
		"snapshots x --from d -k /no":    "reading kubeconfig",
	} {
		cmd := NewCommand(&ui.IO{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
		cmd.SetArgs(strings.Fields(line))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

func TestRestoreAsksForConfirmation(t *testing.T) {
	for answer, want := range map[string]string{"no\n": "canceled, nothing was changed", "yes\n": ""} {
		o := &restoreOptions{}
		err := o.confirm(&ui.IO{In: strings.NewReader(answer), Err: &bytes.Buffer{}, CanAsk: true}, "dev", storage.Entry{Name: "20260102T030405Z"})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: got %v, want %q", answer, err, want)
		}
	}
	if err := (&restoreOptions{}).confirm(&ui.IO{}, "dev", storage.Entry{}); err == nil || !strings.Contains(err.Error(), "use --yes") {
		t.Errorf("without a terminal: %v", err)
	}
}
