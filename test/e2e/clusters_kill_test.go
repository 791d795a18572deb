package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/test/gittest"
	"github.com/drover-dev/drover/internal/test/killtest"
	"github.com/drover-dev/drover/internal/test/metaltest"
)

// killedEverywhere runs a command repeatedly, kills it in each phase, and then lets it finish.
func (s *story) killedEverywhere(cluster string, phases []string, args ...string) result {
	s.t.Helper()
	began := time.Now()
	said := killtest.Everywhere(s.t, s.killable(cluster, phases, args...))
	s.t.Logf("drover %s, killed in each of %d phases, took %s:\n%s", strings.Join(args, " "), len(phases), time.Since(began).Round(100*time.Millisecond), said)
	return result{stderr: said}
}

// killable is a command that may be killed.
func (s *story) killable(cluster string, phases []string, args ...string) killtest.Command {
	return killtest.Command{
		New: func() *exec.Cmd {
			cmd := s.command(args...)
			cmd.Dir = s.dir
			return cmd
		},
		Record: s.record(cluster), Phases: phases, Inside: inside,
		Killed: func(phase string) {
			if n := len(s.supervisors(cluster)); n > 1 {
				s.t.Errorf("there are %d planes for cluster %s in %s", n, cluster, phase)
			}
		},
	}
}

// record is the file that records the progress of a cluster operation.
func (s *story) record(cluster string) phase.Record {
	return phase.Record{Dir: filepath.Join(s.dir, cluster, "generated"), Cluster: cluster}
}

func (f *fleet) bootstrap(cluster string) string { return filepath.Join(f.home+"-bootstrap", cluster) }

// supervisors returns the supervisors of planes for a cluster on this machine.
func (s *story) supervisors(cluster string) []int {
	return slices.DeleteFunc(processes(s.bootstrap(cluster)), func(pid int) bool {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		return err != nil || !strings.Contains(string(line), "--foreground")
	})
}

// noBootstrap checks that nothing is left of the bootstrap plane of a cluster.
func (f *fleet) noBootstrap(cluster string) {
	f.t.Helper()
	if _, err := os.Stat(f.bootstrap(cluster)); err == nil {
		f.t.Errorf("the plane for %s is still there", cluster)
	}
	if left := processes(f.bootstrap(cluster)); len(left) > 0 {
		f.t.Errorf("processes %v outlive the plane for %s", left, cluster)
	}
}

// countResources is the number of machines and addresses.
func (f *fleet) countResources() [2]int {
	f.t.Helper()
	if _, err := os.Stat(f.metalHome()); err != nil {
		return [2]int{} // no machine was ordered yet
	}
	home := metal.Home{Dir: f.metalHome()}
	at, err := home.ReadEndpoint()
	if err != nil {
		f.t.Fatal(err)
	}
	token, err := home.Token(at.Project)
	if err != nil {
		f.t.Fatal(err)
	}
	machines, addresses := metaltest.Metal{URL: at.URL + "/metal/v1", Token: token, Project: at.Project}.Left(f.t)
	return [2]int{machines, addresses}
}

// testCreationIsResumed creates a management cluster, whose spec is in Git, with a command that is
// killed in each phase.
func testCreationIsResumed(_ *testing.T, s *story) {
	before := s.countResources()
	s.others = before
	s.openRepository()
	r := s.killedEverywhere("second", createPhases, "create", "cluster", "-f", s.gitSpec("second", 0))
	s.wentThrough(r, createPhases...)
	s.noBootstrap("second")
	if has := s.countResources(); has != [2]int{before[0] + 1, before[1] + 1} {
		s.t.Errorf("there were %d machines and %d addresses, and now %d and %d", before[0], before[1], has[0], has[1])
	}
	if spec := s.inGit(secondPath + "eksa-system/eksa-cluster.yaml"); !strings.Contains(spec, "name: second") {
		s.t.Errorf("Git has another spec:\n%s", spec)
	}
}

// testUndone undoes a creation. Nothing may be written on the management clusters during it.
func testUndone(_ *testing.T, s *story) {
	quiet, quietInGit := s.checkIdle(s.mgmt), s.checkIdle(s.second())
	commits := s.git.Commits(gittest.Branch)
	s.checkCleanup("half")
	quiet()
	quietInGit()
	if now := s.git.Commits(gittest.Branch); now != commits {
		s.t.Errorf("a quiet management cluster committed %d times", now-commits)
	}
}

// checkCleanup kills the creation of a management cluster while its machine boots, and cleans it
// up.
func (s *story) checkCleanup(cluster string) {
	s.t.Helper()
	before := s.countResources()
	create := []string{"create", "cluster", "-f", s.spec(cluster, "1.36", 0, "")}
	s.killable(cluster, createPhases, create...).KillIn(s.t, lifecycle.CreateWorkloadCluster, "Provisioning device")
	if during := s.countResources(); during[0] <= before[0] {
		s.t.Errorf("it was killed before there was a machine: there were %d, and now %d", before[0], during[0])
	}
	if done := killtest.Recorded(s.t, s.record(cluster)); !slices.Equal(done, []string{lifecycle.CreateBootstrapCluster}) {
		s.t.Errorf("done is %v", done)
	}
	s.mustHere(append(create, "--cleanup")...)
	if after := s.countResources(); after != before {
		s.t.Errorf("there were %d machines and %d addresses, and now %d and %d", before[0], before[1], after[0], after[1])
	}
	s.noBootstrap(cluster)
	if _, err := os.Stat(filepath.Join(s.dir, cluster)); err == nil {
		s.t.Error("files about the cluster are left")
	}
	s.mustHere(append(create, "--cleanup")...)
}
