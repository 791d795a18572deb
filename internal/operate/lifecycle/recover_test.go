package lifecycle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/objects"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/operate/recovery"
)

// content is the content of a backup.
type content []byte

func (c content) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(c)
	return int64(n), err
}

// lost backs a side up as management cluster shepherd, signed and encrypted, and returns what opens
// the backup.
func (x *twoSides) lost(s *side) recovery.Source {
	x.Helper()
	must := func(err error) {
		x.Helper()
		if err != nil {
			x.Fatal(err)
		}
	}
	authority, err := pki.NewAuthority("shepherd", time.Now(), time.Hour)
	must(err)
	key, err := pki.ParseKey(authority.Key)
	must(err)
	_, err = x.files.recipient()
	must(err)
	identities, err := x.files.identities()
	must(err)
	set, err := objects.Collect(x.Context(), s.client)
	must(err)
	data, err := set.Encode()
	must(err)
	var out bytes.Buffer
	seal := archive.Seal{Key: key}
	source := recovery.Source{Cluster: "shepherd", Signers: authority.Certs}
	for _, i := range identities {
		seal.Recipients, source.Identities = append(seal.Recipients, i.Recipient()), append(source.Identities, i)
	}
	now := time.Now()
	must(archive.Objects().Write(&out, archive.Manifest{Cluster: "shepherd", Created: now, Size: int64(len(data)), Drover: "v0.0.0"}, content(data), seal))
	kept := storage.Directory{Path: x.TempDir()}
	_, err = kept.Put(x.Context(), storage.Name(now), func(w io.Writer) error {
		_, err := w.Write(out.Bytes())
		return err
	})
	must(err)
	source.Storage = kept
	return source
}

func (x *twoSides) recovery(from recovery.Source) *Recovery {
	x.Helper()
	backup, err := recovery.Open(x.Context(), from)
	if err != nil {
		x.Fatal(err)
	}
	config, err := backup.Config(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	m := x.management()
	m.Config = config
	return &Recovery{Target: m, Backup: backup}
}

// forget deletes a cluster of a side, as if the side had been lost.
func (x *twoSides) forget(s *side, names ...string) {
	x.Helper()
	for _, name := range names {
		for _, o := range []client.Object{
			&anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
			&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name}},
			&infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name}},
		} {
			for {
				if err := s.client.Get(x.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					break
				}
				o.SetFinalizers(nil)
				_ = s.client.Update(x.Context(), o)
				_ = s.client.Delete(x.Context(), o)
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

// TestRecoveryResumesAfterAFailureInEachPhase loses a management cluster with a workload cluster,
// and lets every phase of its recovery fail once.
func TestRecoveryResumesAfterAFailureInEachPhase(t *testing.T) {
	x := newTwoSides(t)
	x.workload("sheep")
	own := x.management().Config
	own.Cluster.Annotations = map[string]string{anywherev1.ManagedByCLIAnnotation: "true"}
	for _, o := range own.Objects() {
		if err := client.IgnoreAlreadyExists(x.at.client.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	was := x.read(x.at, "sheep")
	from := x.lost(x.at)
	x.forget(x.at, "sheep", "shepherd")

	noPlace := blockDirectory(strings.TrimSuffix(x.home.Dir, "/shepherd"))
	record := blockDirectory(x.files.Record().Dir)
	failureTest{t, func() (*phase.Plan, error) { return x.recovery(from).Plan() }, x.files.Record(), map[string]trouble{
		SetupAndValidate: x.metal, CreateBootstrapCluster: noPlace, CreateWorkloadCluster: x.at.refusing,
		MoveManagementCluster: x.itself.refusing, InstallEKSAComponents: x.itself.refusing,
		RestoreClusters: x.itself.refusing, TakeOverClusters: x.itself.refusing, InstallAddOns: record, DeleteBootstrap: x.unreadable,
	}}.run()
	if got := x.has(); !slices.Equal(got, []string{"itself"}) {
		t.Errorf("the management cluster is on %v", got)
	}
	sheep := x.read(x.itself, "sheep")
	if sheep == nil || sheep.IsPaused() || sheep.ManagedBy() != was.ManagedBy() || sheep.Annotations[anywherev1.ClusterUIDAnnotation] != string(was.UID) {
		t.Errorf("the workload cluster is %+v", sheep)
	}
	below := &clusterv1.Cluster{}
	if err := x.itself.client.Get(t.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: "sheep"}, below); err != nil || ptr.Deref(below.Spec.Paused, false) {
		t.Errorf("%v: the workload cluster of Cluster API is paused", err)
	}
	if _, err := os.Stat(x.files.path("bundle.key")); err == nil {
		t.Error("the key that signs bundles is left in a file")
	}
}

func TestRecoveryRejectsAnAnsweringManagementCluster(t *testing.T) {
	x := newTwoSides(t)
	own, err := os.ReadFile(x.itself.kubeconfig(x.files.path("alive")))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.files.write(x.files.Kubeconfig(), own); err != nil {
		t.Fatal(err)
	}
	r := &Recovery{Target: x.management(), Backup: &recovery.Backup{}}
	check := func() string {
		plan := &phase.Plan{Command: recoverCommand, Cluster: "shepherd", Phases: []phase.Phase{{Name: "a", Run: func(ctx context.Context, p *phase.Progress) error {
			return preflight(ctx, p, r.checkGone)
		}}}}
		_, err := runFree(t.Context(), plan, x.files.Record(), func(phase.Event) {})
		return fmt.Sprint(err)
	}
	if got := check(); !strings.Contains(got, "still answers at") || !strings.Contains(got, "--delete-old") {
		t.Errorf("one that is alive: %s", got)
	}
	x.itself.down.Store(true)
	if got := check(); !strings.Contains(got, "still answers at") {
		t.Errorf("one whose etcd is down, but whose API server responds: %s", got)
	}
	x.itself.down.Store(false)
}
