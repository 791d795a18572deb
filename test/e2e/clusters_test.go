package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/test/gittest"
)

// team is the namespace of a creator without other privileges.
const team = "team-a"

// TestClusterCommands covers the tasks of an administrator and a creator: creating a management
// cluster from nothing, and creating, scaling, upgrading and deleting a workload cluster without
// access to credentials, while the management cluster is upgraded, including Drover. An older
// commit's program creates the management cluster; every command of the current one for it is
// killed in each of its phases. A second management cluster has its spec in Git, and a workload
// cluster that commits and commands change in turns.
func TestClusterCommands(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *story)
	}{
		{"a management cluster is made from nothing", testManagementFromNothing},
		{"a restricted user makes a workload cluster", testWorkloadByRestrictedUser},
		{"the user scales and upgrades it", testWorkloadChanges},
		{"the management cluster is upgraded and the workload cluster does not notice", testManagementUpgrade},
		{"an older Drover is refused", testOlderIsRefused},
		{"a creator gets no local machines that nobody opened", testLocalMachinesAreClosed},
		{"a creation with GitOps that is killed in each phase completes", testCreationIsResumed},
		{"a commit makes a workload cluster, and commands and commits change it", testClusterInGit},
		{"a creation that was killed is undone, and nothing is written elsewhere", testUndone},
		{"clusters that are deleted disappear from Git", testClustersLeaveGit},
		{"everything is deleted in order", testClustersAreDeleted},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s.in(t)) }) {
			return
		}
	}
}

// story is shared by the steps.
type story struct {
	*fleet
	dir     string // working directory of commands
	mgmt    string // kubeconfig of the management cluster
	creator string // kubeconfig of the restricted user

	// programs, and the one that runs commands
	older, newer, program program

	// outer is the test whose steps these are, and ends after all of them.
	outer *testing.T
	// server has the repository of the second management cluster.
	server *gittest.HTTPS
	git    *gittest.Repository
	// others are the machines and addresses of other clusters.
	others [2]int
}

// Phases of commands for a management cluster.
var (
	createPhases = []string{
		"SetupAndValidate", "CreateBootstrapCluster", "CreateWorkloadCluster", "MoveManagementCluster", "InstallEKSAComponents", "InstallAddOns", "DeleteBootstrap",
	}
	upgradePhases = []string{
		"SetupAndValidate", "UpdateSecrets", "UpgradeNeeded", "PauseEksAAndFluxReconcile", "CreateBootstrapCluster", "InstallCAPI", "MoveManagementToBootstrap",
		"UpgradeWorkloadCluster", "MoveManagementToWorkload", "UpdateClusterAndGitResources", "ResumeFluxReconcile", "DeleteBootstrap",
	}
	deletePhases = []string{
		"SetupAndValidate", "CreateBootstrapCluster", "InstallCAPI", "MoveManagementToBootstrap", "DeleteWorkloadCluster", "CleanupGitRepo", "DeleteBootstrap",
	}
	// inside are points in the middle of phases.
	inside = map[string]string{
		"CreateWorkloadCluster": " is not ", "UpgradeWorkloadCluster": " is not ", "DeleteWorkloadCluster": "mgmt",
		"InstallAddOns":         "Waiting for Flux to apply commit",
		"MoveManagementCluster": "Moving the cluster's objects", "MoveManagementToBootstrap": "Moving the cluster's objects", "MoveManagementToWorkload": "Moving the cluster's objects",
	}
)

func newStory(t *testing.T) *story {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip("local machines need root, and minutes")
	}
	s := &story{fleet: &fleet{plane: newPlane(t)}, dir: t.TempDir(), outer: t}
	s.older, s.newer = olderProgram(t), currentProgram(t)
	if !version.Older(s.older.version, s.newer.version) {
		t.Fatalf("%s is not older than %s", s.older.version, s.newer.version)
	}
	s.program = s.older
	s.mgmt, s.creator = filepath.Join(s.dir, "mgmt", "mgmt-eks-a-cluster.kubeconfig"), filepath.Join(s.dir, "creator.kubeconfig")
	s.name()
	t.Cleanup(func() {
		s.t = t
		for _, cluster := range []string{"mgmt", "second", "half"} {
			if bootstrap := s.bootstrap(cluster); len(processes(bootstrap)) > 0 {
				s.drover("down", "--purge", "--home", bootstrap)
			}
		}
		s.checkPurge(t)
	})
	return s
}

func (s *story) in(t *testing.T) *story {
	s.t = t
	return s
}

// command runs the selected version of the program.
func (s *story) command(args ...string) *exec.Cmd {
	cmd := s.fleet.command(args...)
	cmd.Path = s.program.path
	return cmd
}

// here runs a command in the directory of the story.
func (s *story) here(args ...string) result {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Dir = s.dir
	began := time.Now()
	r := s.run(cmd)
	s.t.Logf("drover %s took %s", strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	return r
}

func (s *story) mustHere(args ...string) result {
	s.t.Helper()
	r := s.here(args...)
	if r.code != 0 {
		s.t.Fatalf("drover %s ended with %d:\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// spec writes the spec of a cluster.
func (s *story) spec(name, minor string, workers int, more string) string {
	s.t.Helper()
	manager := "mgmt"
	if more == "" {
		manager = name // it has no team namespace
	}
	text := fmt.Sprintf(`apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: %[1]s%[4]s}
spec:
  kubernetesVersion: "%[2]s"
  managementCluster: {name: %[5]s}
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [%[3]s]
  clusterNetwork:
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
  datacenterRef: {kind: DockerDatacenterConfig, name: %[1]s}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: %[1]s%[4]s}
spec: {}
`, name, minor, workersText(workers), more, manager)
	file := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func workersText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("{name: md-0, count: %d}", n)
}

// phases returns the phases that a command announces.
func phases(r result) []string {
	var out []string
	for _, line := range strings.Split(r.stderr, "\n") {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(line, " ") && f[0] == fmt.Sprint(len(out)+1) {
			out = append(out, f[1])
		}
	}
	return out
}

func (s *story) wentThrough(r result, want ...string) {
	s.t.Helper()
	if got := phases(r); !slices.Equal(got, want) {
		s.t.Errorf("the phases are %v, want %v:\n%s", got, want, r.stderr)
	}
}

func (s *story) client(file string) (kubernetes.Interface, *rest.Config) {
	s.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return c, cfg
}

func testManagementFromNothing(t *testing.T, s *story) {
	s.mustHere("create", "cluster", "-f", s.spec("mgmt", "1.35", 0, ""))
	if info, err := os.Stat(s.mgmt); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: the kubeconfig is %v", err, info)
	}
	s.noBootstrap("mgmt")
	if has := s.countResources(); has != [2]int{1, 1} {
		t.Errorf("there are %d machines and %d addresses", has[0], has[1])
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	out := s.mustHere("get", "clusters", "-k", s.mgmt, "-o", "json").stdout
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != "mgmt" {
		t.Errorf("%v: it knows of\n%s", err, out)
	}
	s.secret("older", canary)
}

// secret creates a Secret on the management cluster.
func (s *story) secret(name, word string) {
	s.t.Helper()
	mgmt, _ := s.client(s.mgmt)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"word": word}}
	if _, err := mgmt.CoreV1().Secrets("default").Create(s.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// checkEncrypted checks that the management cluster's etcd has Secrets in encrypted form: those
// that are new, and the current revision of those from before it had a key.
func (s *story) checkEncrypted(node *corev1.Node) {
	s.t.Helper()
	const word = "canary-that-nobody-hears"
	s.secret("newer", word)
	m := s.on(node)
	for _, name := range []string{"older", "newer"} {
		if !s.matchesEtcd(m, "/registry/secrets/default/"+name+".{1,40}k8s:enc:secretbox:v1:key-") {
			s.t.Errorf("Secret %s is not encrypted", name)
		}
	}
	if s.inEtcd(m, word) {
		s.t.Error("a Secret is stored as it is")
	}
	mgmt, _ := s.client(s.mgmt)
	for name, want := range map[string]string{"older": canary, "newer": word} {
		secret, err := mgmt.CoreV1().Secrets("default").Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil || string(secret.Data["word"]) != want {
			s.t.Errorf("Secret %s can't be read: %v", name, err)
		}
	}
}

func testWorkloadByRestrictedUser(t *testing.T, s *story) {
	s.program = s.newer
	s.mustHere("create", "user", "creator", "-n", team, "--local-machines", "-o", s.creator, "-k", s.mgmt)
	r := s.mustHere("create", "cluster", "-f", s.spec("one", "1.35", 1, ", namespace: "+team), "--kubeconfig", s.creator)
	s.wentThrough(r, "SetupAndValidate", "CreateWorkloadCluster", "InstallAddOns")
	one, _ := s.client(filepath.Join(s.dir, "one", "one-eks-a-cluster.kubeconfig"))
	nodes, err := one.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Fatalf("%v: the cluster has %d nodes", err, len(nodes.Items))
	}
	creator, _ := s.client(s.creator)
	for namespace, names := range map[string][]string{"eksa-system": {"local-metal", "one-kubeconfig", "one-ca", "mgmt-kubeconfig"}, "drover-system": {"drover-bundle-key"}, team: {"other"}} {
		for _, name := range names {
			if _, err := creator.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("the user is not kept from Secret %s/%s: %v", namespace, name, err)
			}
		}
		if _, err := creator.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("the user is not kept from the Secrets of %s: %v", namespace, err)
		}
	}
}

func testLocalMachinesAreClosed(t *testing.T, s *story) {
	stranger := filepath.Join(s.dir, "stranger.kubeconfig")
	s.mustHere("create", "user", "stranger", "-n", "strangers", "-o", stranger, "-k", s.mgmt)
	r := s.here("kubectl", "--kubeconfig", stranger, "apply", "--dry-run=server", "-f", s.spec("other", "1.36", 1, ", namespace: strangers"))
	if r.code == 0 || !strings.Contains(r.stderr, "may not be used by clusters in namespace") {
		t.Errorf("a creator gets machines of the host that nobody opened: %d\n%s", r.code, r.stderr)
	}
}

func testWorkloadChanges(t *testing.T, s *story) {
	again := time.Now()
	s.mustHere("upgrade", "cluster", "-f", s.spec("one", "1.35", 1, ", namespace: "+team), "-k", s.creator)
	t.Logf("an upgrade to what is there took %s", time.Since(again).Round(10*time.Millisecond))
	r := s.mustHere("upgrade", "cluster", "-f", s.spec("one", "1.36", 2, ", namespace: "+team), "-mc", s.creator)
	s.wentThrough(r, "SetupAndValidate", "PauseEksAAndFluxReconcile", "UpgradeWorkloadCluster", "UpdateClusterAndGitResources", "ResumeFluxReconcile")
	one, _ := s.client(filepath.Join(s.dir, "one", "one-eks-a-cluster.kubeconfig"))
	nodes, err := one.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%v: the cluster has %d nodes", err, len(nodes.Items))
	}
	for _, n := range nodes.Items {
		if n.Status.NodeInfo.KubeletVersion != newKubernetes {
			t.Errorf("node %s has %s", n.Name, n.Status.NodeInfo.KubeletVersion)
		}
	}
	if r := s.here("upgrade", "cluster", "-f", s.spec("one", "1.35", 2, ", namespace: "+team), "-k", s.creator); r.code == 0 || !strings.Contains(r.stderr, "downgrade") {
		t.Errorf("a downgrade ended with %d:\n%s", r.code, r.stderr)
	}
}

// load counts requests to the API of a cluster, and those that failed.
type load struct{ sent, failed atomic.Int64 }

// sending sends requests until the context ends.
func sending(ctx context.Context, interval time.Duration, request func(context.Context) error) *load {
	l := &load{}
	go func() {
		for ctx.Err() == nil {
			err := request(ctx)
			if ctx.Err() != nil {
				return
			}
			l.sent.Add(1)
			if err != nil {
				l.failed.Add(1)
			}
			time.Sleep(interval)
		}
	}()
	return l
}

// check fails the test if a request has failed, or if there were hardly any.
func (l *load) check(t *testing.T, what string, least int64) {
	t.Helper()
	if sent, failed := l.sent.Load(), l.failed.Load(); failed > 0 || sent < least {
		t.Errorf("%d of %d %s failed, want none of at least %d", failed, sent, what, least)
	}
}

// reading is one request.
func reading(c kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	}
}

// writing is one request that changes an object, and is repeated once if it fails.
func writing(t *testing.T, c kubernetes.Interface) func(context.Context) error {
	t.Helper()
	const name = "written"
	objects := c.CoreV1().ConfigMaps("default")
	if _, err := objects.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	write := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := objects.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n), metav1.PatchOptions{})
		return err
	}
	return func(ctx context.Context) error {
		n++
		if write(ctx) == nil {
			return nil
		}
		return write(ctx)
	}
}

// awaitKubeProxy waits until kube-proxy runs everywhere in the version of the cluster: Cluster API
// replaces its Pods after the control plane, and doesn't wait for them.
func awaitKubeProxy(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	var last string
	for range 300 {
		d, err := c.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		image, s := d.Spec.Template.Spec.Containers[0].Image, d.Status
		if strings.HasSuffix(image, ":"+newKubernetes) && s.ObservedGeneration == d.Generation &&
			s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled {
			return
		}
		last = fmt.Sprintf("%s: %+v", image, s)
		time.Sleep(time.Second)
	}
	t.Fatalf("kube-proxy was not replaced: %s", last)
}

// containers returns the restarts of each container on a node of a cluster, by ID. Pods of deleted
// nodes remain for a while.
func containers(t *testing.T, c kubernetes.Interface) map[string]int32 {
	t.Helper()
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int32{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == p.Spec.NodeName }) {
			continue
		}
		for _, s := range p.Status.ContainerStatuses {
			out[string(p.UID)+"/"+s.Name] = s.RestartCount
		}
	}
	return out
}

func testManagementUpgrade(t *testing.T, s *story) {
	one, _ := s.client(filepath.Join(s.dir, "one", "one-eks-a-cluster.kubeconfig"))
	awaitKubeProxy(t, one)
	before := containers(t, one)
	ctx, stop := context.WithCancel(t.Context())
	reads, writes := sending(ctx, 200*time.Millisecond, reading(one)), sending(ctx, 50*time.Millisecond, writing(t, one))
	r := s.killedEverywhere("mgmt", upgradePhases, "upgrade", "cluster", "-f", s.spec("mgmt", "1.36", 0, ""))
	s.wentThrough(r, upgradePhases...)
	stop()
	s.noBootstrap("mgmt")
	if has := s.countResources(); has != [2]int{4, 2} {
		t.Errorf("there are %d machines and %d addresses", has[0], has[1])
	}
	reads.check(t, "reads", 10)
	writes.check(t, "writes", 100)
	after := containers(t, one)
	for id, restarts := range before {
		if now, there := after[id]; !there || now != restarts {
			t.Errorf("container %s was restarted %d times, then %d (there: %t)", id, restarts, now, there)
		}
	}
	mgmt, _ := s.client(s.mgmt)
	nodes, err := mgmt.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Status.NodeInfo.KubeletVersion != newKubernetes {
		t.Fatalf("%v: the management cluster has nodes %v", err, nodes.Items)
	}
	s.checkEncrypted(&nodes.Items[0])
}

// testOlderIsRefused checks that the Drover that created the management cluster is rejected after
// its upgrade.
// Its messages are its own.
func testOlderIsRefused(t *testing.T, s *story) {
	before := s.generations()
	s.program = s.older
	defer func() { s.program = s.newer }()
	for _, args := range [][]string{
		{"upgrade", "cluster", "-f", s.spec("mgmt", "1.36", 1, "")},
		{"upgrade", "cluster", "-f", s.spec("one", "1.36", 1, ", namespace: "+team), "-k", s.creator},
		{"create", "cluster", "-f", s.spec("two", "1.36", 1, ", namespace: "+team), "-k", s.creator},
		{"delete", "cluster", "-f", filepath.Join(s.dir, "one.yaml"), "-k", s.creator},
	} {
		r := s.here(args...)
		if r.code == 0 || !strings.Contains(r.stderr, s.older.version) || !strings.Contains(r.stderr, s.newer.version) {
			t.Errorf("%v ended with %d:\n%s", args, r.code, r.stderr)
		}
	}
	s.program = s.newer
	if after := s.generations(); after != before {
		t.Errorf("the clusters were %s, now they are %s", before, after)
	}
}

// generations are how often the spec of each cluster was changed.
func (s *story) generations() string {
	s.t.Helper()
	return s.mustHere("kubectl", "--kubeconfig", s.mgmt, "get", "clusters.anywhere.eks.amazonaws.com", "-A",
		"-o", "jsonpath={range .items[*]}{.metadata.name}/{.metadata.generation}/{.metadata.deletionTimestamp} {end}").stdout
}

func testClustersAreDeleted(t *testing.T, s *story) {
	if r := s.here("delete", "cluster", "-f", filepath.Join(s.dir, "mgmt.yaml")); r.code == 0 || !strings.Contains(r.stderr, "one") {
		t.Errorf("a management cluster with work was deleted, %d:\n%s", r.code, r.stderr)
	}
	// Without a terminal and without --yes, a cluster that is ready stays.
	unconfirmed := []string{"delete", "cluster", "-f", filepath.Join(s.dir, "one.yaml"), "-k", s.creator}
	if r := s.here(unconfirmed...); r.code == 0 || !strings.Contains(r.stderr, "--yes") {
		t.Errorf("a ready cluster was deleted without confirmation, %d:\n%s", r.code, r.stderr)
	}
	r := s.mustHere(append(unconfirmed, "--yes")...)
	s.wentThrough(r, "SetupAndValidate", "DeleteWorkloadCluster", "CleanupGitRepo")
	var records struct {
		Items []struct {
			Spec struct{ Action, User string }
		}
	}
	out := s.mustHere("audit", "one", "-k", s.mgmt, "-o", "json").stdout
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, r := range records.Items {
		if r.Spec.User == "system:serviceaccount:"+team+":creator" {
			did = append(did, r.Spec.Action)
		}
	}
	if !slices.Equal(did, []string{"Created", "Upgraded", "Deleted"}) {
		t.Errorf("on record is %v:\n%s", did, out)
	}
	r = s.killedEverywhere("mgmt", deletePhases, "delete", "cluster", "-f", filepath.Join(s.dir, "mgmt.yaml"), "--yes")
	s.wentThrough(r, deletePhases...)
	s.noBootstrap("mgmt")
	if has := s.countResources(); has != [2]int{} {
		t.Errorf("%d machines and %d addresses are left", has[0], has[1])
	}
}
