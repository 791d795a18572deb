package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

const snapshotName = "20260102T030405Z"

// world is a cluster whose etcd is lost, with a snapshot of it.
type world struct {
	t        *testing.T
	client   client.Client
	store    storage.Directory
	identity *age.X25519Identity
	host     *fakeHost
	snapshot []byte
	api      *rest.Config
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t *testing.T, machines ...infrav1.PacketMachine) *world {
	t.Helper()
	w := &world{t: t, store: storage.Directory{Path: t.TempDir()}, host: &fakeHost{}}
	database := bytes.Repeat([]byte("database"), 4096)
	sum := sha256.Sum256(database)
	w.snapshot = slices.Concat(database, sum[:])
	authority, err := pki.NewAuthority("dev", time.Now(), time.Hour)
	must(t, err)
	w.identity, err = age.GenerateX25519Identity()
	must(t, err)
	w.save(authority, w.snapshot)
	kinds, err := scheme.New()
	must(t, err)
	objects := []runtime.Object{
		&clusterv1.Cluster{ObjectMeta: meta("dev")}, &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "dev"}},
		&anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "other"}},
		&corev1.Secret{ObjectMeta: meta("dev-ca"), Data: map[string][]byte{corev1.TLSCertKey: authority.PEM(), corev1.TLSPrivateKeyKey: authority.Key}},
	}
	for i := range machines {
		objects = append(objects, &machines[i])
	}
	w.client = fake.NewClientBuilder().WithScheme(kinds).WithRuntimeObjects(objects...).Build()
	api := httptest.NewServer(http.HandlerFunc(w.serveLeases))
	t.Cleanup(api.Close)
	w.api = &rest.Config{Host: api.URL}
	return w
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name}
}

// save stores a snapshot that an authority signs.
func (w *world) save(authority *pki.Authority, content []byte) {
	w.t.Helper()
	key, err := pki.ParseKey(authority.Key)
	must(w.t, err)
	must(w.t, w.store.Delete(w.t.Context(), snapshotName))
	_, err = w.store.Put(w.t.Context(), snapshotName, func(out io.Writer) error {
		m := archive.Manifest{Namespace: anywherev1.SystemNamespace, Cluster: "dev", Created: time.Now(), Size: int64(len(content))}
		return archive.Write(out, m, bytes.NewReader(content), archive.Seal{Key: key, Recipients: []age.Recipient{w.identity.Recipient()}})
	})
	must(w.t, err)
}

// serveLeases answers that all kubelets have renewed their Leases a moment from now.
func (w *world) serveLeases(out http.ResponseWriter, _ *http.Request) {
	all := &infrav1.PacketMachineList{}
	if err := w.client.List(context.Background(), all); err != nil {
		w.t.Error(err)
	}
	list := coordinationv1.LeaseList{}
	for i := range all.Items {
		list.Items = append(list.Items, coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: all.Items[i].Name}, Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(time.Second)))},
		})
	}
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(list); err != nil {
		w.t.Error(err)
	}
}

// restore returns a restore of the snapshot.
func (w *world) restore() *Restore {
	return &Restore{
		Cluster: etcd.Cluster{
			ObjectKey: client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: "dev"}, Objects: w.client,
			API: func(context.Context) (*rest.Config, error) { return rest.CopyConfig(w.api), nil },
		},
		Objects: w.client, Storage: w.store, Snapshot: snapshotName, Identities: []age.Identity{w.identity}, Host: w.host,
		Progress: func(string) {},
	}
}

// paused returns what pauses the cluster, and the name of the restore that did.
func (w *world) paused() (ours, upstream bool, id string) {
	w.t.Helper()
	a, c := &anywherev1.Cluster{}, &clusterv1.Cluster{}
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team-a", Name: "dev"}, a))
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: "dev"}, c))
	return a.IsPaused(), ptr.Deref(c.Spec.Paused, false), c.Annotations[restoringAnnotation]
}

// packetMachine returns a machine of the cluster with labels.
func packetMachine(name string, labels ...string) infrav1.PacketMachine {
	m := infrav1.PacketMachine{ObjectMeta: meta(name)}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "dev"}
	for _, l := range labels {
		m.Labels[l] = "dev"
	}
	m.Spec.ProviderID = ptr.To("equinixmetal://device-" + name)
	return m
}

func controlPlanes(n int) []infrav1.PacketMachine {
	var out []infrav1.PacketMachine
	for i := range n {
		out = append(out, packetMachine(fmt.Sprintf("cp-%d", i), clusterv1.MachineControlPlaneLabel))
	}
	return out
}

func externalEtcd() []infrav1.PacketMachine {
	return append(controlPlanes(1), packetMachine("etcd-0", etcdv1.MemberLabel), packetMachine("worker"))
}

// fakeHost has machines that do what they are asked.
type fakeHost struct {
	mu    sync.Mutex
	calls []string            // "machine verb"
	got   map[string][]byte   // snapshots by machine
	flags map[string][]string // arguments of restore by machine
	fail  func(machine, verb string) error
}

func (h *fakeHost) Exec(_ context.Context, device string, stdin io.Reader, argv ...string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, verb := strings.TrimPrefix(device, "device-"), argv[4]
	if verb != "show" {
		h.calls = append(h.calls, name+" "+verb)
	}
	if h.fail != nil {
		if err := h.fail(name, verb); err != nil {
			return "", err
		}
	}
	switch verb {
	case "show":
		return showPod(name, argv[5]), nil
	case "restore":
		content, err := io.ReadAll(stdin)
		if h.got == nil {
			h.got, h.flags = map[string][]byte{}, map[string][]string{}
		}
		h.got[name], h.flags[name] = content, argv[5:]
		return "", err
	}
	return "", nil
}

// verbs returns the calls of a verb, or all without one.
func (h *fakeHost) verbs(verb string) []string {
	return slices.DeleteFunc(slices.Clone(h.calls), func(c string) bool { return verb != "" && !strings.HasSuffix(c, " "+verb) })
}

func showPod(machine, pod string) string {
	args := []string{pod, "--secure-port=6443"}
	if pod == "etcd" {
		args = []string{
			pod, "--name=" + machine, "--initial-advertise-peer-urls=https://" + machine + ":2380", "--data-dir=/var/lib/etcd",
			"--initial-cluster=old=https://old:2380", "--listen-metrics-urls=http://127.0.0.1:2381",
		}
	}
	out, err := json.Marshal(corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: args}}}})
	if err != nil {
		panic(err)
	}
	return string(out)
}

var errLost = errors.New("local machine is not running")

// bareHost runs etcd without flags.
type bareHost struct{ *fakeHost }

func (bareHost) Exec(context.Context, string, io.Reader, ...string) (string, error) {
	return "kind: Pod", nil
}
