package user

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/operate/users"
)

func TestLoopbackAddressesAreRecognized(t *testing.T) {
	for host, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://127.8.0.1": true, "https://[::1]:6443": true, "https://localhost:6443": true,
		"https://192.0.2.1:6443": false, "https://plane.example.com": false, "https://localhost.example.com": false, "": false, "://": false, "%zz": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("%q is this machine: %t", host, got)
		}
	}
}

func TestTableOfUsers(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	since := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	for name, tt := range map[string]struct {
		users []users.User
		want  []string
	}{
		"nobody": {nil, []string{"No users found. Create one with `drover create user NAME -n NAMESPACE`."}},
		"two users": {
			[]users.User{{Namespace: "team-a", Name: "ops", Role: "creator", Since: since(26 * time.Hour)}, {Namespace: "team-b", Name: "güest", Role: "viewer", Since: since(0)}},
			[]string{"NAMESPACE NAME ROLE AGE", "team-a ops creator 26h", "team-b güest viewer 0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := table(&out, tt.users, now); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, strings.Join(strings.Fields(line), " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKubeconfigNamesItsUserAndNamespace(t *testing.T) {
	c := &creation{}
	c.Name, c.Namespace = "ops", "team-a"
	want := kubeconfig.Origin{Plane: "https://plane", Namespace: "team-a", Cluster: "user ops"}
	if got := c.origin("https://plane"); got != want {
		t.Errorf("origin %+v, want %+v", got, want)
	}
}

func TestCommandsNeedTheirArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"accepts 1 arg(s), received 0":                 {"create", "user", "-n", "team-a"},
		`required flag(s) "namespace" not set`:         {"create", "user", "ops"},
		"accepts 1 arg(s), received 2":                 {"delete", "user", "a", "b", "-n", "team-a"},
		`unknown command "ops" for "drover get users"`: {"get", "users", "ops"},
		`invalid argument "soon" for "--valid"`:        {"create", "user", "ops", "-n", "team-a", "--valid", "soon"},
	} {
		if _, _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("drover %s: error %v, want %q", strings.Join(args, " "), err, want)
		}
	}
}

func TestUnreadableKubeconfigIsNamed(t *testing.T) {
	for _, args := range [][]string{{"get", "users"}, {"delete", "user", "ops", "-n", "team-a"}, {"create", "user", "ops", "-n", "team-a"}} {
		if _, _, err := run(t, append(args, "-k", "no-such-file")...); err == nil || !strings.Contains(err.Error(), "no-such-file") {
			t.Errorf("drover %s: error %v", strings.Join(args, " "), err)
		}
	}
}

func TestCreatorsAreWarnedAboutLocalMachines(t *testing.T) {
	c := &creation{}
	c.Namespace = "team-a"
	for machines, want := range map[users.Machines]string{
		users.MachinesUnknown: "",
		users.MachinesClosed:  "team-a can't use machines of this host. To allow it, which trusts them with root on the host, add --local-machines.",
		users.MachinesOpen:    "team-a can use machines of this host, which trusts them with root on it.",
	} {
		if got := c.trust(machines); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", machines, got, want)
		}
	}
}
