package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/kube"
)

func TestAdvertisedAddressIsNeverUnspecified(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "127.0.0.1": "127.0.0.1", "192.0.2.1": "192.0.2.1"} {
		if got := advertised(address); got != want {
			t.Errorf("advertised(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestSupervisorArgsPassOptionsOn(t *testing.T) {
	base := []string{"up", "--foreground", "--home", "/h", "--progress-fd", "3"}
	for name, tt := range map[string]struct {
		options Options
		want    []string
	}{
		"defaults": {Options{}, nil},
		"all options": {
			Options{
				APIAddress: "192.0.2.1", APIPort: 7443, SANs: []string{"a", "b"}, RegistryAddress: "0.0.0.0", RegistryPort: 5001,
				BundleKey: "/k", GitOps: new(bool), KubeDir: "/kube", Flags: []string{"--metal", "memory"},
			},
			[]string{
				"--api-address", "192.0.2.1", "--api-port", "7443", "--san", "a,b", "--registry-address", "0.0.0.0", "--registry-port", "5001",
				"--bundle-key", "/k", "--gitops=false", "--kube-dir", "/kube", "--metal", "memory",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Home = Home{Dir: "/h"}
			if diff := cmp.Diff(slices.Concat(base, tt.want), supervisorArgs(tt.options)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBriefPlanesCollectGarbageLessOften(t *testing.T) {
	t.Setenv("GOGC", "")
	for brief, want := range map[bool]int{true: 1, false: 0} {
		if got := (Options{Brief: brief}).environment(); len(got) != want {
			t.Errorf("brief %t: environment %q", brief, got)
		}
	}
	t.Setenv("GOGC", "75")
	if got := (Options{Brief: true}).environment(); got != nil {
		t.Errorf("environment %q overrides the user's", got)
	}
}

func TestAnonymousRequestsReachHealthOnly(t *testing.T) {
	c := authentication()
	var paths []string
	for _, condition := range c.Anonymous.Conditions {
		paths = append(paths, condition.Path)
	}
	if diff := cmp.Diff([]string{"/livez", "/readyz", "/healthz"}, paths); diff != "" || !c.Anonymous.Enabled {
		t.Errorf("anonymous requests (-want +got):\n%s", diff)
	}
}

func TestAuditPolicyRecordsMetadataOnly(t *testing.T) {
	for i, r := range auditPolicy().Rules {
		if r.Level != auditv1.LevelNone && r.Level != auditv1.LevelMetadata {
			t.Errorf("rule %d records %s", i, r.Level)
		}
	}
}

func TestArgumentsReferToFilesOfTheHome(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	p := &Plane{home: h, kube: kube.Binary{Path: "/kube"}, config: Config{APIAddress: "127.0.0.1", APIPort: 1, RegistryPort: 2, Ports: Ports{EtcdClient: 3, EtcdPeer: 4, ControllerManager: 5, ManagerHealth: 6, ManagerMetrics: 7, ManagerWebhook: 8}}}
	if err := errors.Join(h.makeRoot(), h.makeRest(), h.writeMeta("v1.36.3", time.Now()), h.writeAPIServerFiles(p.config), h.ensureBundleKey("")); err != nil {
		t.Fatal(err)
	}
	if _, err := (PKI{home: h, now: time.Now()}).Ensure(p.config); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ensureEncryption(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := h.writeKubeconfigs(p.config); err != nil {
		t.Fatal(err)
	}
	for program, args := range map[string][]string{
		"etcd": p.etcdArgs(), "kube-apiserver": p.apiserverArgs(), "kube-controller-manager": p.controllerManagerArgs(), "manager": p.managerArgs(),
	} {
		for _, arg := range args {
			_, path, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(path, h.Dir) || strings.HasPrefix(arg, "--chart-cache=") {
				continue
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s %s: %v", program, arg, err)
			}
		}
	}
}

func TestProgressRoundTrip(t *testing.T) {
	var wire strings.Builder
	p := ProgressTo(&wire)
	p.stage("etcd").ok()
	p.stage("metal").skipped("no root")
	cause := errors.New("port in use")
	if err := p.stage("registry").failed(cause); !errors.Is(err, cause) {
		t.Errorf("failed returns %v", err)
	}
	p.done()
	var got []string
	ReadProgress(strings.NewReader(wire.String()+"garbage\n{}"), func(e Event) { got = append(got, strings.TrimSpace(e.Stage+" "+e.Status+" "+e.Error)) })
	want := []string{"etcd started", "etcd done", "metal started", "metal skipped no root", "registry started", "registry failed port in use", "ready"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var none Progress
	none.stage("x").ok() // a nil Progress discards events
	none.done()
}

func TestPortTakenErrorNamesTheFlag(t *testing.T) {
	err := &PortTakenError{Address: "127.0.0.1", Port: 6443, Flag: "--api-port", Err: syscall.EADDRINUSE}
	want := "port 6443 on 127.0.0.1 is already in use: stop the program that uses it, or choose another port with --api-port (address already in use)"
	if err.Error() != want || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestPortChoiceRejectsInvalidNumbers(t *testing.T) {
	for _, asked := range []int{-1, 65536, 1 << 30} {
		port := 0
		err := portChoice{port: &port, address: loopbackAddress, asked: asked, flag: "--api-port"}.make()
		if want := fmt.Sprintf("--api-port %d is not a port number", asked); err == nil || err.Error() != want || port != 0 {
			t.Errorf("error %v, port %d; want %q", err, port, want)
		}
	}
}

func TestRequestedPortsReplaceEarlierOnes(t *testing.T) {
	c := Config{APIPort: 1, RegistryPort: 2}
	for name, tt := range map[string]struct {
		options       Options
		api, registry int
	}{
		"none": {Options{}, 1, 2}, "one": {Options{APIPort: 3}, 3, 2}, "both": {Options{APIPort: 3, RegistryPort: 4}, 3, 4},
	} {
		if got := c.asked(tt.options); got.APIPort != tt.api || got.RegistryPort != tt.registry {
			t.Errorf("%s: ports %d and %d", name, got.APIPort, got.RegistryPort)
		}
	}
}

func TestExistingFindsTheNearestDirectory(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: dir, filepath.Join(dir, "a", "b", "c"): dir, "/": "/"} {
		if got := existing(path); got != want {
			t.Errorf("existing(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestSpaceLeftNamesTheMissingSpace(t *testing.T) {
	dir := t.TempDir()
	if err := spaceLeft(dir, 1); err != nil {
		t.Error(err)
	}
	err := spaceLeft(filepath.Join(dir, "home"), 1<<62)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "home")) || !strings.Contains(err.Error(), "MiB are required") {
		t.Errorf("got error %v, want one that contains %q and %q", err, filepath.Join(dir, "home"), "MiB are required")
	}
}

func TestAllowedFilesOfABackup(t *testing.T) {
	for name, want := range map[string]bool{
		"etcd.snapshot": true, "home.json": true, "pki/ca.crt": true, "encryption/config.yaml": true,
		"": false, "/etc/passwd": false, "../pki/ca.crt": false, "pki/../../x": false, "pki/a/b": false, "pki": false, "run/state.json": false, "config.json": false, "pki/": false, "./home.json": false,
	} {
		if got := (Manifest{}).allowed(name); got != want {
			t.Errorf("%q is allowed: %t", name, got)
		}
	}
}

func TestRegistryCertificateNamesItsAddress(t *testing.T) {
	hosts := func(c Config, name string) []string {
		all := leaves(c)
		return all[slices.IndexFunc(all, func(l leaf) bool { return l.name == name })].hosts
	}
	if diff := cmp.Diff([]string{"localhost", "127.0.0.1", "::1"}, hosts(Config{SANs: []string{"x"}}, "registry")); diff != "" {
		t.Errorf("hosts on loopback (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"localhost", "127.0.0.1", "::1", "192.0.2.1", "x"}, hosts(Config{RegistryAddress: "192.0.2.1", SANs: []string{"x"}}, "registry")); diff != "" {
		t.Errorf("hosts with an address (-want +got):\n%s", diff)
	}
	if api := hosts(Config{APIAddress: "192.0.2.2", SANs: []string{"plane.example.com"}}, "apiserver"); !slices.Contains(api, "192.0.2.2") || !slices.Contains(api, "plane.example.com") || !slices.Contains(api, serviceIP) {
		t.Errorf("hosts of the API server %q", api)
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	for file, read := range map[string]func() error{
		h.configFile(): func() error { _, err := h.readConfig(); return err },
		h.packetFile(): func() error { _, err := h.readPacket(); return err },
		h.stateFile():  func() error { _, err := h.readState(); return err },
		h.metaFile():   func() error { _, err := h.ReadMeta(); return err },
	} {
		if err := read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v without %q", err, file)
		}
		write(t, file, "{")
		if err := read(); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v for a damaged %q", err, file)
		}
	}
}

func TestEndedStateHasNoProcesses(t *testing.T) {
	s := State{
		Phase: PhaseReady, Supervisor: process.Process{PID: 7}, Children: []process.Process{{PID: 8}},
		Components: []ComponentStatus{{Name: "etcd", State: Ready, PID: 8, Restarts: 3}},
	}
	got := s.ended()
	if got.Phase != PhaseKilled || got.Supervisor.PID != 0 || got.Children != nil || got.component("etcd").State != Stopped || got.component("etcd").PID != 0 || got.component("etcd").Restarts != 3 {
		t.Errorf("state %+v", got)
	}
	if stopped := (State{Phase: PhaseStopped}).ended(); stopped.Phase != PhaseStopped {
		t.Errorf("a stopped plane is %s", stopped.Phase)
	}
	if c := s.component("missing"); c.Name != "" || c.Ready() {
		t.Errorf("component %+v", c)
	}
}

func TestProberReportsTheStatus(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"etcdserver":"3.6.1"}`)
	}))
	defer server.Close()
	p := newProber(Home{Dir: t.TempDir()})
	var v struct{ Etcdserver string }
	if err := p.getJSON(t.Context(), server.URL+"/version", &v); err != nil || v.Etcdserver != "3.6.1" {
		t.Errorf("version %q, error %v", v.Etcdserver, err)
	}
	if err := p.get(t.Context(), server.URL+"/readyz"); err == nil || !strings.HasSuffix(err.Error(), "503 Service Unavailable") {
		t.Errorf("error %v, want the status", err)
	}
	for _, url := range []string{"://", "https://127.0.0.1:1/readyz"} {
		if err := p.get(t.Context(), url); err == nil {
			t.Errorf("%s answers", url)
		}
	}
}

func TestWrittenKubeconfigIsComplete(t *testing.T) {
	dir := t.TempDir()
	ca, file := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "kubeconfig")
	write(t, ca, "PEM")
	if err := writeKubeconfig(file, "https://127.0.0.1:6443", ca, &clientcmdapi.AuthInfo{Token: "t"}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	if config.Clusters[current.Cluster].Server != "https://127.0.0.1:6443" || string(config.Clusters[current.Cluster].CertificateAuthorityData) != "PEM" || config.AuthInfos[current.AuthInfo].Token != "t" {
		t.Errorf("kubeconfig %+v", config)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if err := writeKubeconfig(file, "", filepath.Join(dir, "missing"), nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestFlagDisablesEachCache(t *testing.T) {
	if got := withoutCache([]string{"pods", "jobs.batch"}); got != "--watch-cache-sizes=pods#0,jobs.batch#0" {
		t.Errorf("flag %q", got)
	}
}

func TestRegistryListensOnLoopbackToo(t *testing.T) {
	for address, want := range map[string][]string{
		"": {"127.0.0.1:5000"}, "127.0.0.2": {"127.0.0.1:5000"}, "0.0.0.0": {"0.0.0.0:5000"}, "::": {"[::]:5000"}, "192.0.2.1": {"127.0.0.1:5000", "192.0.2.1:5000"},
	} {
		if diff := cmp.Diff(want, (Config{RegistryAddress: address, RegistryPort: 5000}).registryListens()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", address, diff)
		}
	}
}
