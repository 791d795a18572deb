package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
)

// restored creates a cluster that is paused, with the mark of a restore unless a user paused it.
func (w *world) restored(name string, byUser bool) *clusterv1.Cluster {
	w.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	c.Spec.Paused = ptr.To(true)
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "x", Kind: "Y", Name: "z"}
	ours := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Annotations: map[string]string{anywherev1.PausedAnnotation: "true"}}}
	ours.Spec.Management = ptr.To(false)
	if !byUser {
		c.Annotations = map[string]string{bootstrap.PausedForMove: name, bootstrap.RestoredAnnotation: name}
		ours.Annotations[bootstrap.PausedForMove] = name
	}
	for _, o := range []client.Object{c, ours} {
		w.must(w.client.Create(w.Context(), o))
		w.Cleanup(func() { _ = w.client.Delete(context.Background(), o) })
	}
	return c
}

// paused reports which of the two objects of a cluster are paused.
func (w *world) paused(name string) (below, ours bool) {
	w.Helper()
	c, o := &clusterv1.Cluster{}, &anywherev1.Cluster{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, c))
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o))
	return ptr.Deref(c.Spec.Paused, false), o.IsPaused()
}

func TestOnlyWhatARecoveryPausedIsResumed(t *testing.T) {
	w := newWorld(t)
	w.restored("changed", false)
	w.restored("another", false)
	w.restored("kept", true)
	half := w.restored("half", false)
	delete(half.Annotations, bootstrap.RestoredAnnotation)
	w.must(w.client.Update(t.Context(), half))

	w.ok("resume", "cluster", "changed")
	if below, ours := w.paused("changed"); below || ours {
		t.Errorf("the cluster is still paused: %v, %v", below, ours)
	}
	w.fails([]string{"not finished"}, "resume", "cluster", "half")
	for _, name := range []string{"another", "kept", "half"} {
		if below, ours := w.paused(name); !below || !ours {
			t.Errorf("cluster %s was resumed: %v, %v", name, below, ours)
		}
	}
	for _, name := range []string{"changed", "kept", "nobody"} {
		w.fails([]string{`no cluster "` + name + `" was left paused`}, "resume", "cluster", name)
	}
	if below, ours := w.paused("kept"); !below || !ours {
		t.Errorf("what a user paused was resumed: %v, %v", below, ours)
	}
}

// recoverOf parses the arguments of a command, and returns its flags.
func recoverOf(t *testing.T, args ...string) *recoverOptions {
	t.Helper()
	o := &recoverOptions{}
	cmd := o.command()
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRecoveryIsResumedWithTheSameFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"recover mgmt": {"mgmt"},
		"recover mgmt --from /backups --backup 20260501T120000Z --signed-by ca.crt --identity key.txt --delete-old": {
			"mgmt", "--delete-old", "--identity", "key.txt", "--from", "/backups", "--signed-by", "ca.crt", "--backup", "20260501T120000Z",
		},
	} {
		if got := recoverOf(t, args...).again(); got != want {
			t.Errorf("%q is resumed with %q, want %q", args, got, want)
		}
	}
}

// TestBackupsBeforeAndAfterARecoveryAreAccepted checks that a cluster that was recovered can be
// recovered again: from a backup of its own, or of the cluster that it replaced.
func TestBackupsBeforeAndAfterARecoveryAreAccepted(t *testing.T) {
	t.Chdir(t.TempDir())
	of := files("mgmt")
	signers := func(o recoverOptions) []string {
		t.Helper()
		found, err := o.signers(of)
		if err != nil {
			return []string{err.Error()}
		}
		var names []string
		for _, cert := range found {
			names = append(names, cert.Subject.CommonName)
		}
		return names
	}
	write := func(file, ca string) {
		t.Helper()
		authority, err := pki.NewAuthority(ca, time.Now(), time.Hour)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o700)
		}
		if err == nil {
			config := clientcmdapi.NewConfig()
			config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1", CertificateAuthorityData: authority.PEM()}
			config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
			config.CurrentContext = "c"
			err = clientcmd.WriteToFile(*config, file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := signers(recoverOptions{}); len(got) != 1 || !strings.Contains(got[0], "--signed-by") {
		t.Errorf("without any kubeconfig: %v", got)
	}
	write(of.Kubeconfig(), "first")
	if got := signers(recoverOptions{}); !slices.Equal(got, []string{"first"}) {
		t.Errorf("before a recovery: %v", got)
	}
	write(of.Lost(), "first")
	write(of.Kubeconfig(), "second")
	if got := signers(recoverOptions{}); !slices.Equal(got, []string{"second", "first"}) {
		t.Errorf("after a recovery: %v", got)
	}
	write("kept.kubeconfig", "third")
	if got := signers(recoverOptions{signedBy: "kept.kubeconfig"}); !slices.Equal(got, []string{"third"}) {
		t.Errorf("with --signed-by: %v", got)
	}
}
