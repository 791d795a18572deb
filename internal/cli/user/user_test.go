package user

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/operate/users"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, told bytes.Buffer
	root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
	root.AddGroup(&cobra.Group{ID: "clusters"})
	AddCommands(root, "clusters", &ui.IO{Out: &out, Err: &told})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), told.String(), err
}

func TestUserCommands(t *testing.T) {
	server := kubetest.Shared(t, install.Options{WebhookURL: "https://" + kubetest.FreeAddress(t)})
	admin, ns, file := server.Kubeconfig(t), server.Namespace(t), filepath.Join(t.TempDir(), "creator.kubeconfig")
	must := func(args ...string) (string, string) {
		t.Helper()
		out, told, err := run(t, append(args, "-k", admin)...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out, told
	}

	_, told := must("create", "user", "creator", "-n", ns, "-o", file)
	if !strings.Contains(told, "User creator has the role creator in namespace "+ns) || !strings.Contains(told, "only on this machine") {
		t.Errorf("got output %q", told)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || config.Contexts[config.CurrentContext].Namespace != ns {
		t.Errorf("the kubeconfig is %+v, %v", config, err)
	}
	must("create", "user", "creator", "-n", ns, "-o", file) // replaced by a newer one
	printed, _ := must("create", "user", "viewer", "-n", ns, "--role", "viewer")
	if config, err := clientcmd.Load([]byte(printed)); err != nil || config.AuthInfos["viewer"].Token == "" {
		t.Errorf("what is printed is %q, %v", printed, err)
	}
	if _, _, err := run(t, "create", "user", "other", "-n", ns, "-o", file, "-k", admin); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("the kubeconfig of another user is overwritten: %v", err)
	}

	listed, _ := must("get", "users", "-n", ns)
	if lines := strings.Split(strings.TrimSpace(listed), "\n"); len(lines) != 3 || strings.Join(strings.Fields(lines[2])[1:3], " ") != "viewer viewer" {
		t.Errorf("the list is\n%s", listed)
	}
	must("delete", "user", "creator", "-n", ns)
	listed, _ = must("get", "users", "-n", ns, "-o", "json")
	var left []users.User
	if err := json.Unmarshal([]byte(listed), &left); err != nil || len(left) != 1 || left[0].Name != "viewer" {
		t.Errorf("%v: left are %s", err, listed)
	}
	if _, _, err := run(t, "create", "user", "other", "-n", ns, "-k", file); err == nil || !strings.Contains(err.Error(), "reading ClusterRole") {
		t.Errorf("a creator creates users: %v", err)
	}
}

func TestInvalidUsersAreUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		`name "Creator"`:          {"create", "user", "Creator", "-n", "team-a"},
		`"king"`:                  {"create", "user", "creator", "-n", "team-a", "--role", "king"},
		"too short":               {"create", "user", "creator", "-n", "team-a", "--valid", "1m"},
		"reserved for the system": {"create", "user", "creator", "-n", "eksa-system"},
	} {
		_, _, err := run(t, append(args, "-k", "no-such-file")...)
		var usage *ui.CodeError
		if !errors.As(err, &usage) || usage.Code != ui.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
