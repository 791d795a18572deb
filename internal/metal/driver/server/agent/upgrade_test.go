package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMayUpgrade(t *testing.T) {
	u := Upgrade{Device: "d", Version: "v1.36.3"}
	for name, tt := range map[string]struct {
		state State
		want  string // part of the error
	}{
		"a provisioned server":            {State{Device: "d", Phase: Done}, ""},
		"the same upgrade once more":      {State{Device: "d", Phase: Upgrading, Upgrade: &Upgraded{Version: "v1.36.3"}}, ""},
		"another upgrade":                 {State{Device: "d", Phase: Upgrading, Upgrade: &Upgraded{Version: "v1.36.4"}}, "upgraded to Kubernetes v1.36.4"},
		"a server of another device":      {State{Device: "e", Phase: Done}, `device "e"`},
		"a server that is no device":      {State{}, `device ""`},
		"one that is being installed":     {State{Device: "d", Phase: Installing}, "not provisioned"},
		"one that executes userdata":      {State{Device: "d", Phase: Executing}, "not provisioned"},
		"a server that is being restored": {State{Device: "d", Phase: CleaningUp}, "not provisioned"},
	} {
		err := tt.state.mayUpgrade(u)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestOnlyBlobsOfTheSpecStay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"images", "kube", "former-images", "former-kube", ".part-x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOtherBlobs(dir, Spec{Images: "images", Files: map[string]string{"/opt/drover/bin/kube": "kube"}}); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "images"), filepath.Join(dir, "kube")}, left); diff != "" {
		t.Error(diff)
	}
}
