package audit

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.Local)

func record(name, cluster, user string, action droverv1.AuditAction, at time.Time) *droverv1.AuditRecord {
	r := &droverv1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{droverv1.ClusterLabel: cluster, droverv1.NamespaceLabel: "herd"}}}
	r.Spec = droverv1.AuditRecordSpec{
		Cluster: droverv1.AuditedCluster{Name: cluster, Namespace: "herd", UID: "u"}, Action: action, User: user, Time: metav1.NewMicroTime(at),
	}
	return r
}

func TestAuditListsSelectedRecordsOldestFirst(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	file := server.Kubeconfig(t)
	c, err := connect(&management.Flags{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	upgrade := record("u-2", "billy", "administrator", droverv1.Upgraded, noon.Add(time.Minute))
	upgrade.Spec.Changes = []droverv1.AuditedChange{{Path: "spec.kubernetesVersion", From: "1.35", To: "1.36"}, {Path: "spec.proxyConfiguration.httpProxy"}}
	for _, r := range []*droverv1.AuditRecord{
		upgrade, record("u-1", "billy", "creator", droverv1.Created, noon), record("v-1", "nanny", "creator", droverv1.Created, noon.Add(time.Hour)),
		record("now", "nanny", "creator", droverv1.Deleted, time.Now()),
	} {
		if err := c.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		args []string
		want []string // users and actions, in order
	}{
		{"all", nil, []string{"creator Created", "administrator Upgraded", "creator Created", "creator Deleted"}},
		{"of a cluster", []string{"billy"}, []string{"creator Created", "administrator Upgraded"}},
		{"of an unknown cluster", []string{"nobody"}, nil},
		{"of a namespace", []string{"-n", "other"}, nil},
		{"of a user", []string{"--user", "administrator"}, []string{"administrator Upgraded"}},
		{"of some actions", []string{"--action", "created,deleted"}, []string{"creator Created", "creator Created", "creator Deleted"}},
		{"of the last hour", []string{"--since", "1h"}, []string{"creator Deleted"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := run(t, append(tc.args, "--kubeconfig", file)...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
				f := strings.Fields(line)
				got = append(got, f[4]+" "+f[3])
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s\n%s", d, out)
			}
		})
	}
	out, err := run(t, "billy", "--kubeconfig", file)
	if err != nil || !strings.Contains(out, "2026-05-01 12:01:00   herd/billy   Upgraded   administrator   kubernetesVersion 1.35 → 1.36, proxyConfiguration.httpProxy\n") {
		t.Errorf("%v: the table is\n%s", err, out)
	}
}

func TestAuditRejectsInvalidFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown action "eaten"; use Created, Upgraded, Scaled, Changed, Paused, Resumed, Deleted, Evicted`: {"--action", "eaten"},
		"must not be negative": {"--since", "-1h"},
	} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}

func TestChangesAreSummarizedInOneLine(t *testing.T) {
	path := func(names ...string) (out []droverv1.AuditedChange) {
		for _, name := range names {
			out = append(out, droverv1.AuditedChange{Path: "spec." + name})
		}
		return out
	}
	for want, all := range map[string][]droverv1.AuditedChange{
		"-":                  nil,
		"a":                  path("a"),
		"a, b, c":            path("a", "b", "c"),
		"a, b, c and 2 more": path("a", "b", "c", "d", "e"),
		"count 1 → 3":        {{Path: "spec.count", From: "1", To: "3"}},
		"count none → 3":     {{Path: "spec.count", To: "3"}},
		"count 1 → none":     {{Path: "spec.count", From: "1"}},
	} {
		if got := changes(all); got != want {
			t.Errorf("%v is %q, want %q", all, got, want)
		}
	}
}

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(&ui.IO{Out: &out, Err: &out})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}
