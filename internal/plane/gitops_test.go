package plane

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drover-dev/drover/internal/kube/flux"
)

func TestGitOpsIsRememberedUntilItIsTurnedOff(t *testing.T) {
	on, off := true, false
	var c Config
	for i, step := range []struct {
		asked     *bool
		want, off bool
	}{{nil, false, false}, {&on, true, false}, {nil, true, false}, {&off, false, true}, {nil, false, true}, {&on, true, false}} {
		var err error
		if c, err = c.complete(Options{GitOps: step.asked}); err != nil {
			t.Fatal(err)
		}
		if c.GitOps != step.want || c.GitOpsOff != step.off {
			t.Errorf("start %d: GitOps is %t and turned off is %t, want %t and %t", i, c.GitOps, c.GitOpsOff, step.want, step.off)
		}
	}
}

func TestFluxIsRequiredOnlyWithGitOps(t *testing.T) {
	t.Setenv(flux.EnvDir, t.TempDir())
	o := Options{Home: Home{Dir: t.TempDir()}}
	if got, err := o.findFlux(); got != nil || err != nil {
		t.Errorf("without GitOps: %v, %v", got, err)
	}
	on := true
	o.GitOps = &on
	var missing *flux.MissingError
	if _, err := o.findFlux(); !errors.As(err, &missing) {
		t.Errorf("with GitOps: %v, want a MissingError", err)
	}
	if err := writeJSON(o.Home.configFile(), Config{GitOps: true}); err != nil {
		t.Fatal(err)
	}
	o.GitOps = nil
	if _, err := o.findFlux(); !errors.As(err, &missing) {
		t.Errorf("with GitOps since an earlier start: %v, want a MissingError", err)
	}
}

func TestFluxControllersHaveTheirOwnCertificatesOnlyWithGitOps(t *testing.T) {
	users := func(c Config) map[string]string {
		found := map[string]string{}
		for _, l := range leaves(c) {
			if strings.HasSuffix(l.name, "-controller") {
				found[l.name] = l.user
			}
		}
		return found
	}
	if got := users(Config{}); len(got) != 0 {
		t.Errorf("without GitOps: %v", got)
	}
	want := map[string]string{
		"source-controller":    "system:serviceaccount:flux-system:source-controller",
		"kustomize-controller": "system:serviceaccount:flux-system:kustomize-controller",
	}
	if diff := cmp.Diff(want, users(Config{GitOps: true})); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
}

func TestFluxEnvironmentLeavesOutTheUsersCredentials(t *testing.T) {
	h := Home{Dir: "/h"}
	got := h.fluxEnvironment(flux.Kustomize(), []string{
		"PATH=/bin", "https_proxy=http://proxy:3128", "HOME=/root", "AWS_SECRET_ACCESS_KEY=s", "DOCKER_CONFIG=/root/.docker",
		"TMPDIR=/tmp", "KUBECONFIG=/root/.kube/config", "METAL_AUTH_TOKEN=t", "SSH_AUTH_SOCK=/run/agent", "GOGC=100",
	})
	want := []string{
		"GOGC=50", "PATH=/bin", "https_proxy=http://proxy:3128", "GOGC=100",
		"KUBECONFIG=/h/run/kustomize-controller.kubeconfig", "RUNTIME_NAMESPACE=flux-system",
		"HOME=/h/flux/home", "TMPDIR=/h/run/tmp-kustomize-controller", "TUF_ROOT=/h/flux/home/sigstore",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// fluxPlane is a plane whose controllers are never started.
func fluxPlane(t *testing.T) *Plane {
	t.Helper()
	c, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Plane{home: Home{Dir: "/h"}, config: c, flux: flux.Programs{"source-controller": "/s", "kustomize-controller": "/k"}}
	p.gitOps.Store(true)
	return p
}

func TestManagerServesGitWebhooksOnlyWithGitOps(t *testing.T) {
	p := fluxPlane(t)
	want := "--git-webhook-addr=127.0.0.1:" + strconv.Itoa(p.config.Ports.GitWebhook)
	if args := p.managerArgs(); !slices.Contains(args, "--gitops") || !slices.Contains(args, want) {
		t.Errorf("%q is missing in %q", want, args)
	}
	p.gitOps.Store(false)
	for _, arg := range p.managerArgs() {
		if strings.HasPrefix(arg, "--git") {
			t.Errorf("without GitOps, the manager gets %s", arg)
		}
	}
}

func TestGitWebhookURLHasTheAddressOfTheAPI(t *testing.T) {
	ports := Ports{GitWebhook: 20001}
	for want, c := range map[string]Config{
		"": {APIAddress: "127.0.0.1", Ports: ports},
		"https://127.0.0.1:20001/git/flux-system":        {APIAddress: "127.0.0.1", GitOps: true, Ports: ports},
		"https://10.0.0.1:20001/git/flux-system":         {APIAddress: "10.0.0.1", GitOps: true, Ports: ports, SANs: []string{"mgmt.example.com"}},
		"https://mgmt.example.com:20001/git/flux-system": {APIAddress: "0.0.0.0", GitOps: true, Ports: ports, SANs: []string{"mgmt.example.com"}},
		"https://127.0.0.1:20002/git/flux-system":        {APIAddress: "::", GitOps: true, Ports: Ports{GitWebhook: 20002}},
	} {
		if got := c.GitWebhookURL(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

func TestFluxConfigsAreWatchedUntilGitOpsIsDecided(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		on, off, want bool
	}{"undecided": {want: true}, "on": {on: true}, "turned off": {off: true}} {
		p := &Plane{home: Home{Dir: t.TempDir()}, config: Config{GitOpsOff: tt.off}, log: slog.New(slog.DiscardHandler)}
		p.gitOps.Store(tt.on)
		if got := p.watchFluxConfigs(ctx) != nil; got != tt.want {
			t.Errorf("%s: watched is %t", name, got)
		}
	}
}

func TestAFluxConfigAppears(t *testing.T) {
	for name, tt := range map[string]struct {
		event watch.EventType
		want  bool
	}{"one is created": {watch.Added, true}, "one is deleted": {watch.Deleted, false}, "the watch expires": {watch.Error, false}} {
		events := watch.NewFakeWithChanSize(1, false)
		events.Action(tt.event, &metav1.PartialObjectMetadata{})
		if tt.event == watch.Deleted {
			events.Stop()
		}
		if got := appears(events); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFluxControllersListenOnLoopbackOnly(t *testing.T) {
	p := fluxPlane(t)
	for _, c := range []Component{p.sourceController(), p.kustomizeController()} {
		listens := 0
		for _, arg := range c.Command().Args {
			name, value, _ := strings.Cut(arg, "=")
			if strings.HasSuffix(name, "-addr") {
				listens++
				if value != "0" && !strings.HasPrefix(value, "127.0.0.1:") {
					t.Errorf("%s gets %s", c.Name, arg)
				}
			}
		}
		if listens < 2 {
			t.Errorf("%s gets only %d addresses, and listens on all by default", c.Name, listens)
		}
	}
}

func TestKustomizationsAreConfinedToTheirNamespace(t *testing.T) {
	args := fluxPlane(t).kustomizeController().Command().Args
	for _, want := range []string{"--default-service-account=default", "--no-remote-bases"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q is missing in %q", want, args)
		}
	}
}

func TestTemporaryFilesOfKilledFluxControllersAreRemoved(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if err := h.makeDirs(h.fluxTemp(flux.Kustomize())); err != nil {
		t.Fatal(err)
	}
	left := h.fluxTemp(flux.Kustomize()) + "/left"
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.renewFluxTemp(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestConfigWithoutGitOpsLooksAsBefore(t *testing.T) {
	data, err := json.Marshal(Config{})
	if err != nil || strings.Contains(string(data), "gitOps") {
		t.Errorf("%s, %v", data, err)
	}
}
