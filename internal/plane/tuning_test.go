package plane

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kube"
)

// setting returns the environment of a program.
func setting(cmd *exec.Cmd, name string) (value string) {
	for _, entry := range cmd.Env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v // the last one wins
		}
	}
	return value
}

func TestProgramsSaveMemoryByDefault(t *testing.T) {
	p := &Plane{kube: kube.Binary{Path: "/bin/kube"}}
	t.Setenv("GOMAXPROCS", "") // has it restored
	if err := os.Unsetenv("GOMAXPROCS"); err != nil {
		t.Fatal(err)
	}
	for program, cores := range map[string]string{"etcd": "1", "kube-controller-manager": "1", "kube-apiserver": ""} {
		if got := setting(p.program(program), "GOMAXPROCS"); got != cores {
			t.Errorf("%s has GOMAXPROCS %q, want %q", program, got, cores)
		}
	}
	t.Setenv("GOGC", "200")
	t.Setenv("GOMAXPROCS", "4")
	cmd := p.program("etcd")
	if gogc, cores := setting(cmd, "GOGC"), setting(cmd, "GOMAXPROCS"); gogc != "200" || cores != "4" {
		t.Errorf("with settings of its user, etcd has GOGC %q and GOMAXPROCS %q", gogc, cores)
	}
}

func TestWatchCachesAreDisabledPerKind(t *testing.T) {
	if got, want := withoutCache([]string{"pods", "jobs.batch"}), "--watch-cache-sizes=pods#0,jobs.batch#0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBootstrapPlaneFavorsSpeedByDefault(t *testing.T) {
	t.Setenv("GOGC", "")
	if got := (Options{}).environment(); len(got) > 0 {
		t.Errorf("permanent plane: got %v", got)
	}
	if got := (Options{Brief: true}).environment(); len(got) != 1 || got[0] != "GOGC="+briefGOGC {
		t.Errorf("a brief one has %v", got)
	}
	t.Setenv("GOGC", "off")
	if got := (Options{Brief: true}).environment(); len(got) > 0 {
		t.Errorf("with the user's own setting, a brief one has %v", got)
	}
}
