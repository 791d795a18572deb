package guest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestNewEnough(t *testing.T) {
	for release, want := range map[string]bool{
		"6.18.44-fc-v445": true, "5.13.0": true, "5.15.0-91-generic": true, "6.1": true,
		"5.4.0-150-generic": false, "4.18.0-553.el8.x86_64": false, "5.12.19": false, "": false, "unknown": false,
	} {
		if got := newEnough(release); got != want {
			t.Errorf("kernel %q: %t, want %t", release, got, want)
		}
	}
}

// A typo in the rules would look like a kernel without support.
func TestProbedRulesAreValid(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs nft and root")
	}
	cmd := exec.Command("nft", "--check", "--file", "-")
	cmd.Stdin = strings.NewReader(proxyRules)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "syntax error") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("nftables for kube-proxy here: %v %s", err, out)
}
