package cluster

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestWorkloadClusterIsCreatedUpgradedAndDeleted(t *testing.T) {
	w := newWorld(t)
	file := w.spec("one")
	w.manage("one")
	got := w.ok("create", "cluster", "-f", file)
	for _, want := range []string{"create cluster one, in 3 phases", "✓ SetupAndValidate", "✓ CreateWorkloadCluster", "- InstallAddOns", "GitOps is not configured", "total", "Cluster one is ready"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("create: got output without %q:\n%s", want, got.err)
		}
	}
	kubeconfig := filepath.Join("one", "one-eks-a-cluster.kubeconfig")
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v", info, err)
	}
	if data, err := os.ReadFile(kubeconfig); err != nil || string(data) != kubetest.ExampleKubeconfig("one") {
		t.Errorf("the kubeconfig is %q, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join("one", "one-eks-a-cluster.yaml")); err != nil || !strings.Contains(string(data), "kind: DockerDatacenterConfig") || strings.Contains(string(data), "status") {
		t.Errorf("the final spec is %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join("one", "generated")); !os.IsNotExist(err) {
		t.Errorf("the record of a finished run is still there: %v", err)
	}
	live := w.cluster("one")
	if live.ManagedFields[0].Manager != anywherev1.FieldManagerCLI {
		t.Errorf("the fields are %q's", live.ManagedFields[0].Manager)
	}

	w.fails([]string{"already exists", "drover upgrade cluster"}, "create", "cluster", "-f", file)

	began := time.Now()
	got = w.ok("upgrade", "cluster", "-f", file)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("an upgrade that changes nothing takes %s", took)
	}
	if !strings.Contains(got.err, "the cluster is up to date") || w.cluster("one").Generation != live.Generation {
		t.Errorf("upgrade without changes: got output:\n%s", got.err)
	}

	file = w.spec("one", replacing("count: 1\n", "count: 3\n"))
	got = w.ok("upgrade", "cluster", "-f", file, "--dry-run")
	if !strings.Contains(got.out, "spec.workerNodeGroupConfigurations[md-0].count: 1 → 3") || w.cluster("one").Generation != live.Generation {
		t.Errorf("got plan:\n%s", got.out)
	}
	got = w.ok("upgrade", "plan", "cluster", "-f", file, "-o", "text")
	if _, err := line(got.out, "spec.workerNodeGroupConfigurations[md-0].count", "1", "3"); err != nil || !strings.Contains(got.out, "CURRENT VERSION") {
		t.Errorf("got plan of the upgrade:\n%s", got.out)
	}
	w.ok("upgrade", "cluster", "one", "-f", file)
	if n := w.cluster("one").Spec.WorkerNodeGroupConfigurations[0].Count; *n != 3 {
		t.Errorf("there are %d workers", *n)
	}

	got = w.ok("delete", "cluster", "one", "--yes")
	if !w.gone("one") || !strings.Contains(got.err, "Cluster one is deleted") {
		t.Errorf("delete: got output:\n%s", got.err)
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("kubeconfig of a deleted cluster: got error %v, want that it does not exist", err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "one"}, &anywherev1.DockerDatacenterConfig{}); err == nil {
		t.Error("the datacenter that only this cluster used is still there")
	}
}

func TestDryRunPrintsPhasesAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	file := w.spec("dry")
	got := w.ok("create", "cluster", "-f", file, "--dry-run", "-o", "json")
	var plan planned
	w.must(json.Unmarshal([]byte(got.out), &plan))
	var phases []string
	for _, p := range plan.Phases {
		phases = append(phases, p.Name)
	}
	if diff := cmp.Diff([]string{lifecycle.SetupAndValidate, lifecycle.CreateWorkloadCluster, lifecycle.InstallAddOns}, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if !w.gone("dry") || len(plan.Phases[1].Changes) != 4 {
		t.Errorf("the plan is %+v", plan)
	}
	got = w.run(t.Context(), "create", "cluster", "-f", w.spec("mgmt", replacing("management: false", "management: true")), "--dry-run")
	for _, name := range []string{lifecycle.CreateBootstrapCluster, lifecycle.MoveManagementCluster, lifecycle.DeleteBootstrap} {
		if !strings.Contains(got.out, name) {
			t.Errorf("plan of a management cluster: got output without %s:\n%s%s", name, got.out, got.err)
		}
	}
	if entries, _ := os.ReadDir("."); len(entries) != 2 {
		t.Errorf("a dry run leaves %v", entries)
	}
}

func TestInterruptedCreationIsResumedAndCleanedUp(t *testing.T) {
	w := newWorld(t)
	file := w.spec("late")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan outcome)
	go func() { done <- w.run(ctx, "create", "cluster", "-f", file, "-mc", w.kubeconfig) }()
	w.await("the cluster to be made", func() bool { return !w.gone("late") })
	busy := w.drover("create", "cluster", "-f", file)
	if busy.code == 0 || !strings.Contains(busy.err, "another drover process is working on cluster") {
		t.Errorf("concurrent command: got output:\n%s", busy.err)
	}
	cancel()
	got := <-done
	if got.code != 1 || !strings.Contains(got.err, "interrupted in phase CreateWorkloadCluster") || !strings.Contains(got.err, "drover create cluster -f late.yaml --kubeconfig") {
		t.Errorf("after Ctrl-C:\n%s", got.err)
	}
	w.fails([]string{"is unfinished", "Run it again first"}, "upgrade", "cluster", "-f", file)
	w.manage("late")
	got = w.ok("create", "cluster", "-f", file)
	if strings.Contains(got.err, "already exists") {
		t.Errorf("resumed command: got output:\n%s", got.err)
	}
	data, err := os.ReadFile(filepath.Join("late", "late-eks-a-cluster.yaml"))
	if err != nil || strings.Contains(string(data), anywherev1.CreationAnnotation) {
		t.Errorf("the final spec is %q, %v", data, err)
	}
}

// interrupt starts a creation that nothing finishes, and interrupts it once the cluster exists.
func (w *world) interrupt(name, file string) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan outcome, 1)
	go func() { done <- w.run(ctx, "create", "cluster", "-f", file, "-k", w.kubeconfig) }()
	w.await("the creation of "+name, func() bool {
		select {
		case early := <-done:
			w.Fatalf("the creation of %s ended before its interruption:\n%s", name, early.err)
		default:
		}
		return !w.gone(name)
	})
	cancel()
	if got := <-done; !strings.Contains(got.err, "interrupted in phase CreateWorkloadCluster") {
		w.Fatalf("after Ctrl-C:\n%s", got.err)
	}
}

// datacenter returns the datacenter config of a cluster, or nil.
func (w *world) datacenter(name string) *anywherev1.DockerDatacenterConfig {
	w.Helper()
	d := &anywherev1.DockerDatacenterConfig{}
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, d)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return d
}

func TestCleanupRemovesAnUnfinishedCreation(t *testing.T) {
	w := newWorld(t)
	file := w.spec("partial")
	w.interrupt("partial", file)
	w.ok("create", "cluster", "-f", file, "--cleanup")
	if !w.gone("partial") || w.datacenter("partial") != nil {
		t.Error("after --cleanup the cluster or its datacenter is still there")
	}
	got := w.ok("create", "cluster", "-f", file, "--cleanup")
	if !strings.Contains(got.err, "nothing was created") {
		t.Errorf("cleanup of nothing: got output:\n%s", got.err)
	}
}

func TestCleanupKeepsACompletedCluster(t *testing.T) {
	w := newWorld(t)
	file := w.spec("done")
	w.manage("done")
	w.ok("create", "cluster", "-f", file)
	w.fails([]string{"no unfinished creation", "drover delete cluster done"}, "create", "cluster", "-f", file, "--cleanup", "--yes")
	w.must(os.RemoveAll("done")) // as in another directory
	w.fails([]string{"no unfinished creation"}, "create", "cluster", "-f", file, "--cleanup", "--yes")
	if w.gone("done") || w.datacenter("done") == nil {
		t.Error("--cleanup deleted a completed cluster")
	}
	w.ok("delete", "cluster", "done", "--yes")
}

func TestCleanupKeepsWhatOthersCreated(t *testing.T) {
	w := newWorld(t)
	file := w.spec("swap")
	w.interrupt("swap", file)
	// Someone else deletes what is left, and creates a cluster of the same name.
	live, datacenter := w.cluster("swap"), w.datacenter("swap")
	for _, o := range []client.Object{live, datacenter} {
		w.must(w.client.Delete(t.Context(), o))
		o.SetAnnotations(nil)
		o.SetResourceVersion("")
		o.SetUID("")
		w.must(w.client.Create(t.Context(), o))
	}
	w.fails([]string{"no unfinished creation"}, "create", "cluster", "-f", file, "--cleanup", "--yes")
	if w.gone("swap") {
		t.Fatal("--cleanup deleted a cluster that someone else created")
	}
	if command, _, err := files("swap").Record().Unfinished(); err != nil || command != "create cluster" {
		t.Errorf("after a rejected cleanup %q is unfinished, %v", command, err)
	}
	w.must(w.client.Delete(t.Context(), live))
	w.ok("create", "cluster", "-f", file, "--cleanup")
	if w.datacenter("swap") == nil {
		t.Error("--cleanup deleted a datacenter that someone else created")
	}
}

func TestDeletionOfAReadyClusterRequiresConfirmation(t *testing.T) {
	w := newWorld(t)
	file := w.spec("used")
	w.manage("used")
	w.ok("create", "cluster", "-f", file)
	w.fails([]string{`cluster "used" is ready`, "use --yes"}, "delete", "cluster", "used")
	w.fails([]string{`cluster "used" is ready`, "use --yes"}, "delete", "cluster", "-f", file)
	w.answer = "no\n"
	w.fails([]string{"Type yes to continue", "canceled, nothing was deleted"}, "delete", "cluster", "used")
	w.ok("delete", "cluster", "used", "--dry-run")
	if w.gone("used") {
		t.Fatal("the cluster was deleted without confirmation")
	}
	w.answer = "yes\n"
	w.ok("delete", "cluster", "used")
	if !w.gone("used") {
		t.Error("the cluster is still there")
	}

	w.answer = ""
	w.interrupt("fresh", w.spec("fresh"))
	w.ok("delete", "cluster", "fresh") // It was never ready.
}

func TestCreationThatTimesOutNamesTheCause(t *testing.T) {
	w := newWorld(t)
	file := w.spec("bad")
	done := make(chan outcome)
	go func() { done <- w.drover("create", "cluster", "-f", file, "--control-plane-wait-timeout", "3s") }()
	w.await("the cluster to be made", func() bool { return !w.gone("bad") })
	got := <-done
	if got.code != 1 || !strings.Contains(got.err, "phase CreateWorkloadCluster failed") || !strings.Contains(got.err, "waiting for the controller to observe it") || !strings.Contains(got.err, "drover create cluster -f bad.yaml") {
		t.Errorf("a cluster that is never provisioned:\n%s", got.err)
	}
	if _, err := os.Stat(filepath.Join("bad", "generated", "bad-checkpoint.yaml")); err != nil {
		t.Errorf("the record: %v", err)
	}
}

func TestExternalEtcdHasItsOwnTimeout(t *testing.T) {
	w := newWorld(t)
	file := w.spec("apart", func(s string) string {
		return strings.Replace(s, "  datacenterRef:", "  externalEtcdConfiguration: {count: 1}\n  datacenterRef:", 1)
	})
	got := w.drover("create", "cluster", "-f", file, "--external-etcd-wait-timeout", "3s")
	if got.code != 1 || !strings.Contains(got.err, `timed out after 3s waiting for cluster "apart"`) {
		t.Errorf("an etcd that is never provisioned:\n%s", got.err)
	}
}

func TestPreflightFailuresChangeNothing(t *testing.T) {
	w := newWorld(t)
	taken := w.spec("taken")
	w.manage("taken")
	w.ok("create", "cluster", "-f", taken)
	elsewhere := w.namespace
	w.namespace = "default"
	w.fails([]string{`cluster name "taken" already exists in namespace "` + elsewhere}, "create", "cluster", "-f", w.spec("taken"))
	w.namespace = elsewhere
	taken = w.spec("taken")

	clash := w.spec("clash", func(s string) string {
		return strings.ReplaceAll(s, "kind: DockerDatacenterConfig, name: clash", "kind: DockerDatacenterConfig, name: taken")
	}, func(s string) string {
		head, tail, _ := strings.Cut(s, "kind: DockerDatacenterConfig\n")
		return head + "kind: DockerDatacenterConfig\n" + strings.Replace(tail, "name: clash", "name: taken", 1)
	})
	w.fails([]string{`DockerDatacenterConfig "taken" already exists`}, "create", "cluster", "-f", clash)

	w.fails([]string{`cluster "nobody" not found`}, "upgrade", "cluster", "-f", w.spec("nobody"))
	w.fails([]string{`cluster "nobody" not found`}, "delete", "cluster", "nobody")

	live := w.cluster("taken")
	live.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
	w.must(w.client.Update(t.Context(), live))
	w.fails([]string{"is paused"}, "upgrade", "cluster", "-f", taken)
	w.fails([]string{"is paused"}, "delete", "cluster", "taken")
	if entries, _ := filepath.Glob("*/generated"); len(entries) > 0 {
		t.Errorf("refused commands leave %v", entries)
	}
}

func TestUnusableKubeconfigIsExplained(t *testing.T) {
	w := newWorld(t)
	file := w.spec("far")
	write := func(edit func(*clientcmdapi.Config)) string {
		config, err := clientcmd.LoadFromFile(w.kubeconfig)
		w.must(err)
		edit(config)
		path := filepath.Join(t.TempDir(), "kubeconfig")
		w.must(clientcmd.WriteToFile(*config, path))
		return path
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.must(nobody.Close())
	for name, tt := range map[string]struct{ kubeconfig, want string }{
		"not there":  {"no.kubeconfig", `reading kubeconfig "no.kubeconfig": file does not exist`},
		"no content": {write(func(c *clientcmdapi.Config) { c.CurrentContext = "none" }), `lacks its current context "none"`},
		"unknown user": {write(func(c *clientcmdapi.Config) {
			for _, u := range c.AuthInfos {
				*u = clientcmdapi.AuthInfo{Token: "wrong"}
			}
		}), "rejected your credentials"},
		"another authority": {write(func(c *clientcmdapi.Config) {
			for _, x := range c.Clusters {
				x.CertificateAuthorityData, x.CertificateAuthority = nil, ""
			}
		}), "is not the one in the kubeconfig"},
		"no response": {write(func(c *clientcmdapi.Config) {
			for _, x := range c.Clusters {
				x.Server = "https://" + nobody.Addr().String()
			}
		}), "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.run(t.Context(), "create", "cluster", "-f", file, "-k", tt.kubeconfig)
			if got.code != 1 || !strings.Contains(got.err, tt.want) {
				t.Errorf("ends with %d, want %q:\n%s", got.code, tt.want, got.err)
			}
		})
	}
	if !w.gone("far") {
		t.Error("it was made all the same")
	}
}

func TestLegacyFlagsAreAcceptedWithAWarning(t *testing.T) {
	w := newWorld(t)
	file := w.spec("flags")
	got := w.ok("create", "cluster", "-f", file, "--dry-run", "-z", "hw.csv", "--bundles-override", "x", "--skip-validations", "pod-disruption", "--no-timeouts")
	for _, flag := range []string{"--hardware-csv has no effect", "--bundles-override has no effect", "--skip-validations pod-disruption has no effect"} {
		if !strings.Contains(got.err, flag) {
			t.Errorf("nothing is said of %q:\n%s", flag, got.err)
		}
	}
	for want, args := range map[string][]string{
		"--cleanup":                   {"create", "cluster", "-f", file, "--force-cleanup"},
		"unknown check":               {"create", "cluster", "-f", file, "--skip-validations", "everything"},
		"with -f":                     {"create", "cluster"},
		`"no.yaml" not found`:         {"create", "cluster", "-f", "no.yaml"},
		"specify the cluster":         {"delete", "cluster"},
		"not both":                    {"delete", "cluster", "flags", "-f", file},
		`not of "other"`:              {"upgrade", "cluster", "other", "-f", file},
		"conflicts with --kubeconfig": {"create", "cluster", "-f", w.spec("self", replacing("management: false", "management: true"))},
	} {
		if got := w.drover(args...); got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%v ends with %d, want %q:\n%s", args, got.code, want, got.err)
		}
	}
}

// translation is a command line and the arguments that Args returns for it.
type translation struct{ argv, want string }

func translate(t *testing.T, lines []translation) {
	t.Helper()
	for _, tt := range lines {
		if got := strings.Join(Args(strings.Fields(tt.argv)), " "); got != tt.want {
			t.Errorf("%q is %q, want %q", tt.argv, got, tt.want)
		}
	}
}

func TestArgsUnderTheLegacyName(t *testing.T) {
	translate(t, []translation{
		{"drover get clusters", "get clusters"},
		{"drover anywhere create cluster -f x -mc m", "create cluster -f x --kubeconfig m"},
		{"/usr/local/bin/eksctl-anywhere upgrade cluster -f x -mc=m -v 6", "upgrade cluster -f x --kubeconfig=m"},
		{"eksctl-anywhere version -v9", "version"},
		{"drover kubectl get pods -mc x", "kubectl get pods -mc x"},
		{"drover", ""},
	})
}

func TestSpecDecidesTheRoleOfACluster(t *testing.T) {
	w := newWorld(t)
	silent := w.spec("kind", replacing("  management: false\n", ""))
	for _, tt := range []struct {
		file, kubeconfig string
		workload         bool
	}{
		{silent, "", false},
		{silent, "mgmt.kubeconfig", true},
		{w.spec("wl"), "", true},
		{w.spec("wl2", replacing("management: false", "managementCluster: {name: mgmt}")), "", true},
		{w.spec("self", replacing("management: false", "managementCluster: {name: self}")), "", false},
	} {
		c := &change{file: tt.file, kubeconfig: tt.kubeconfig}
		config, err := c.read(lifecycle.Create)
		if err != nil {
			t.Errorf("%s with kubeconfig %q: %v", tt.file, tt.kubeconfig, err)
			continue
		}
		if config.Cluster.IsManaged() != tt.workload {
			t.Errorf("%s with kubeconfig %q is a workload cluster: %v, want %v", tt.file, tt.kubeconfig, !tt.workload, tt.workload)
		}
	}
}

// TestConfigurationOfAnotherToolNamesTheCluster renews certificates with a file that says how to
// reach machines by SSH.
func TestConfigurationOfAnotherToolNamesTheCluster(t *testing.T) {
	w := newWorld(t)
	spec := w.spec("renewed")
	w.manage("renewed")
	w.ok("create", "cluster", "-f", spec)
	file := filepath.Join(t.TempDir(), "renew.yaml")
	w.must(os.WriteFile(file, []byte("clusterName: renewed\nos: ubuntu\ncontrolPlane: {nodes: [192.0.2.1]}\n"), 0o600))
	got := w.ok("renew", "certificates", "-f", file, "-c", "control-plane", "--dry-run")
	if !strings.Contains(got.out, lifecycle.RenewControlPlaneCerts) || strings.Contains(got.out, lifecycle.RenewEtcdCertificates) || !strings.Contains(got.err, "only clusterName") {
		t.Errorf("got output:\n%s%s", got.out, got.err)
	}
	for _, c := range []string{"worker", "Etcd"} {
		if got := w.run(t.Context(), "renew", "certificates", "-f", file, "-c", c); got.code == 0 || !strings.Contains(got.err, "unknown component") {
			t.Errorf("component %q: got output:\n%s", c, got.err)
		}
	}
}
