package helm

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// helmFor returns the real Helm.
func helmFor(t *testing.T, b *bench) *action.Configuration {
	t.Helper()
	kube.ManagedFieldsManager = fieldManager // Helm uses the name of its program, which is a test here
	flags := genericclioptions.NewConfigFlags(false)
	file := kubetest.Kubeconfig(t, b.server.Config)
	flags.KubeConfig, flags.Namespace = &file, &b.namespace
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(flags, b.namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (b *bench) helmInstall(t *testing.T, want tool.Want, serverSide bool) {
	t.Helper()
	chart, err := loader.LoadArchive(bytes.NewReader(b.by[want.Resolved.Digest]))
	if err != nil {
		t.Fatal(err)
	}
	i := action.NewInstall(helmFor(t, b))
	i.ReleaseName, i.Namespace, i.ServerSideApply, i.WaitStrategy = want.ID.Name, want.ID.Namespace, serverSide, kube.HookOnlyStrategy
	if _, err := i.Run(chart, want.Values); err != nil {
		t.Fatal(err)
	}
}

func TestForeignReleasesAreAdoptedWithoutANewRevision(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	chart := b.put(t, "1.0.0", four)
	for name, serverSide := range map[string]bool{"server-side": true, "client-side": false} {
		t.Run(name, func(t *testing.T) {
			want := b.want(name, chart)
			want.Values = map[string]any{"greeting": "hi", "replicas": 2, "extra": map[string]any{"list": []any{1, "two"}}}
			b.helmInstall(t, want, serverSide)
			b.until(t, "the watch tells of the release", func() bool {
				s, _ := b.Observe(b.cluster, want.ID)
				return s.Status == tool.Deployed
			})
			state := b.mustApply(t, want)
			if diff := cmp.Diff([]string{"1 deployed"}, b.statuses(t, name)); diff != "" || state.Revision != 1 {
				t.Fatalf("revision %d, revisions (-want +got):\n%s", state.Revision, diff)
			}

			// Fields that the chart drops are removed, whoever wrote them.
			want.Resolved = b.put(t, "1.1.0", with(four, map[string]string{
				"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {other: '1'}\n",
			}))
			b.mustApply(t, want)
			config, err := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"other": "1"}, config.Data); diff != "" {
				t.Errorf("data after an upgrade (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, b.statuses(t, name)); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelmCanUpgradeOurReleases(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	b.observed(t, want, b.mustApply(t, want))
	want.Values = map[string]any{"greeting": "hi"}
	b.mustApply(t, want)
	cfg := helmFor(t, b)

	list := action.NewList(cfg)
	list.All = true
	found, err := list.Run()
	if err != nil || len(found) != 1 {
		t.Fatalf("helm list shows %d releases (error %v), want 1", len(found), err)
	}
	newest, ok := found[0].(*releasev1.Release)
	if !ok || newest.Version != 2 || newest.Info.Status != releasecommon.StatusDeployed || newest.Chart.Metadata.Version != "1.0.0" {
		t.Errorf("helm list shows %+v, want revision 2 of 1.0.0 deployed", newest)
	}
	rollback := action.NewRollback(cfg)
	rollback.Version, rollback.WaitStrategy = 1, kube.HookOnlyStrategy
	if err := rollback.Run("web"); err != nil {
		t.Fatalf("helm rollback: %v", err)
	}
	uninstall := action.NewUninstall(cfg)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run("web"); err != nil {
		t.Fatalf("helm uninstall: %v", err)
	}
	_, err = b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("ConfigMap after helm uninstall: got error %v, want NotFound", err)
	}
}

// leave writes a record as a killed Helm 3 leaves it, without an apply method.
func (b *bench) leave(t *testing.T, want tool.Want, revision int, status releasecommon.Status) {
	t.Helper()
	chart, err := loader.LoadArchive(bytes.NewReader(b.by[want.Resolved.Digest]))
	if err != nil {
		t.Fatal(err)
	}
	values, err := json.Marshal(want.Values)
	if err != nil {
		t.Fatal(err)
	}
	release := &releasev1.Release{
		Name: want.ID.Name, Namespace: want.ID.Namespace, Version: revision, Chart: chart,
		Info:     &releasev1.Info{FirstDeployed: time.Now(), LastDeployed: time.Now(), Status: status},
		Manifest: "---\n# Source: app/templates/old.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + want.ID.Name + "-old}\n",
	}
	if err := json.Unmarshal(values, &release.Config); err != nil {
		t.Fatal(err)
	}
	if err := (records{cluster: b.cluster, id: want.ID}).create(t.Context(), &record{Release: release}); err != nil {
		t.Fatal(err)
	}
}

func TestPendingReleaseOfKilledHelmIsRecovered(t *testing.T) {
	tests := map[string]struct {
		left []releasecommon.Status
		want []string
	}{
		"pending install":               {[]releasecommon.Status{"pending-install"}, []string{"1 failed", "2 deployed"}},
		"failed install":                {[]releasecommon.Status{"failed"}, []string{"1 failed", "2 deployed"}},
		"pending upgrade":               {[]releasecommon.Status{"deployed", "pending-upgrade"}, []string{"1 superseded", "2 failed", "3 deployed"}},
		"pending rollback":              {[]releasecommon.Status{"superseded", "deployed", "pending-rollback"}, []string{"1 superseded", "2 superseded", "3 failed", "4 deployed"}},
		"failed upgrade":                {[]releasecommon.Status{"deployed", "failed"}, []string{"1 superseded", "2 failed", "3 deployed"}},
		"uninstalling":                  {[]releasecommon.Status{"uninstalling"}, []string{"1 superseded", "2 deployed"}},
		"uninstalled, history was kept": {[]releasecommon.Status{"superseded", "uninstalled"}, []string{"1 superseded", "2 superseded", "3 deployed"}},
		"superseded only":               {[]releasecommon.Status{"superseded"}, []string{"1 superseded", "2 deployed"}},
		"two deployed":                  {[]releasecommon.Status{"deployed", "deployed"}, []string{"1 superseded", "2 superseded", "3 deployed"}},
		"unknown":                       {[]releasecommon.Status{"unknown"}, []string{"1 unknown", "2 deployed"}},
	}
	b := newBench(t)
	b.sync(t)
	old := b.put(t, "0.9.0", four)
	chart := b.put(t, "1.0.0", four)
	n := 0
	for name, tt := range tests {
		n++
		release := "left-" + string(rune('a'+n))
		t.Run(name, func(t *testing.T) {
			want := b.want(release, old)
			for i, status := range tt.left {
				b.leave(t, want, i+1, status)
			}
			want.Resolved = chart
			state := b.mustApply(t, want)
			if diff := cmp.Diff(tt.want, b.statuses(t, release)); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			b.observed(t, want, state)
			if again := b.mustApply(t, want); again != state {
				t.Errorf("state %+v after a second call, want %+v", again, state)
			}
		})
	}
}

func TestNewestOfTwoDeployedRevisionsIsKept(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	b.leave(t, want, 1, "deployed")
	b.leave(t, want, 2, "deployed")
	b.until(t, "the watch tells of both", func() bool {
		s, _ := b.Observe(b.cluster, want.ID)
		return s.Revision == 2
	})
	b.mustApply(t, want)
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

func TestUnreadableRecordIsSkipped(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	b.mustApply(t, want)
	secrets := b.server.Clientset(t).CoreV1().Secrets(b.namespace)
	broken, err := secrets.Get(t.Context(), key("web", 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	broken.Data[secretKey] = []byte("none")
	if _, err := secrets.Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.mustApply(t, want)
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if err := secrets.Delete(t.Context(), key("web", 2), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.mustApply(t, want)
	if err := b.Remove(t.Context(), b.cluster, want); err != nil {
		t.Fatal(err)
	}
	_, err = b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("ConfigMap after removal: got error %v, want NotFound", err)
	}
}
