package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/contents"
	packetcluster "github.com/drover-dev/drover/internal/controllers/packet/cluster"
	"github.com/drover-dev/drover/internal/controllers/packet/machine"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/test/jumpclock"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/metaltest"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a cluster named "c" with external etcd on simulated machines, whose controllers are
// called one after the other.
type world struct {
	ctrlclient.Client

	metal     metaltest.Metal
	namespace string
	etcds     *Controller
	machines  *machine.Controller
	clusters  *packetcluster.Controller
}

func newWorld(t *testing.T, replicas int32) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	c, err := ctrlclient.New(server.Config, ctrlclient.Options{Scheme: packettest.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Client: c, metal: metaltest.New(t), namespace: server.Namespace(t)}
	secrets := contents.New(c, c)
	source := &access.Source{Secrets: secrets, Default: access.Credentials{Token: w.metal.Token, URL: w.metal.URL}}
	events, now := record.NewFakeRecorder(10000), clock.RealClock{}
	w.etcds = &Controller{Client: c, Secrets: secrets, Access: source, Etcd: Client{}, Events: events, Clock: now}
	w.machines = &machine.Controller{Client: c, Access: source, Events: events, Clock: now, PollInterval: time.Minute}
	w.clusters = &packetcluster.Controller{Client: c, Access: source, Events: events, Clock: now}
	w.populate(t, replicas)
	return w
}

// populate creates what Cluster API and users would.
func (w *world) populate(t *testing.T, replicas int32) {
	t.Helper()
	of := metav1.ObjectMeta{Namespace: w.namespace, Name: "c", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}
	cluster := &clusterv1.Cluster{ObjectMeta: of}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: "c"}
	w.must(t, w.Create(t.Context(), cluster))
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	w.must(t, w.Status().Update(t.Context(), cluster))
	packet := &infrav1.PacketCluster{ObjectMeta: of, Spec: infrav1.PacketClusterSpec{ProjectID: w.metal.Project, Metro: "da"}}
	packet.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
	w.must(t, w.Create(t.Context(), packet))
	template := &infrav1.PacketMachineTemplate{ObjectMeta: of}
	template.Spec.Template.Spec = infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86", BillingCycle: "hourly"}
	w.must(t, w.Create(t.Context(), template))
	etcd := &etcdv1.EtcdadmCluster{ObjectMeta: of}
	etcd.Spec.Replicas = &replicas
	etcd.Spec.InfrastructureTemplate = corev1.ObjectReference{APIVersion: infrav1.GroupVersion.String(), Kind: "PacketMachineTemplate", Name: "c"}
	w.must(t, w.Create(t.Context(), etcd))
}

func (w *world) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) reconcile(t *testing.T, r ctrlreconcile.Reconciler, name string) {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: w.namespace, Name: name}})
	w.must(t, err)
}

// settle calls the controllers until check succeeds.
func (w *world) settle(t *testing.T, check func(e *etcdv1.EtcdadmCluster) error) *etcdv1.EtcdadmCluster {
	t.Helper()
	e := &etcdv1.EtcdadmCluster{}
	kubetest.Await(t, kubetest.Patience, func() error {
		w.reconcile(t, w.clusters, "c")
		w.reconcile(t, w.etcds, "c")
		all := w.list(t)
		for i := range all {
			w.reconcile(t, w.machines, all[i].Name)
		}
		if len(all) > 4 {
			t.Fatalf("%d machines", len(all))
		}
		err := w.Get(t.Context(), ctrlclient.ObjectKey{Namespace: w.namespace, Name: "c"}, e)
		if apierrors.IsNotFound(err) {
			e = &etcdv1.EtcdadmCluster{}
		} else if err != nil {
			return err
		}
		lint(t, e)
		return check(e)
	})
	return e
}

// lint checks the rules for every status.
func lint(t *testing.T, e *etcdv1.EtcdadmCluster) {
	t.Helper()
	for _, c := range e.Status.Conditions {
		if c.Reason == "" || c.Status != metav1.ConditionTrue && c.Message == "" && c.Type != clusterv1.PausedCondition {
			t.Errorf("condition is not complete: %+v", c)
		}
	}
}

func (w *world) list(t *testing.T) []infrav1.PacketMachine {
	t.Helper()
	list := &infrav1.PacketMachineList{}
	w.must(t, w.List(t.Context(), list, ctrlclient.InNamespace(w.namespace)))
	return list.Items
}

// ready returns nil if etcd is complete and has none of the machines.
func (w *world) ready(t *testing.T, without ...infrav1.PacketMachine) func(*etcdv1.EtcdadmCluster) error {
	t.Helper()
	return func(e *etcdv1.EtcdadmCluster) error {
		all := w.list(t)
		for _, m := range all {
			for _, old := range without {
				if m.Name == old.Name {
					return fmt.Errorf("machine %q still exists: %+v", m.Name, e.Status)
				}
			}
		}
		if !meta.IsStatusConditionTrue(e.Status.Conditions, clusterv1.ReadyCondition) || len(all) != int(*e.Spec.Replicas) || len(e.Status.Members) != int(*e.Spec.Replicas) {
			return fmt.Errorf("etcd is not ready with %d machines: %+v", len(all), e.Status)
		}
		return nil
	}
}

// TestLifeOfExternalEtcd follows an etcd: it forms, all members are replaced, one is lost and one
// hangs without a change of the endpoints, it grows by one machine at most, and leaves nothing.
func TestLifeOfExternalEtcd(t *testing.T) {
	w := newWorld(t, 3)
	now, members := jumpclock.New(time.Now()), &hangable{}
	w.etcds.Clock, w.etcds.Etcd = now, members
	e := w.settle(t, w.ready(t))
	endpoints := e.Status.Endpoints
	if n := len(strings.Split(endpoints, ",")); n != 3 || e.Status.ReadyReplicas != 3 || !e.Status.CreationComplete || !e.Status.Initialized {
		t.Fatalf("status: %+v", e.Status)
	}
	w.checkSecrets(t)

	e.Spec.EtcdadmConfigSpec.CipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	before := w.list(t)
	w.must(t, w.Update(t.Context(), e))
	if e = w.settle(t, w.ready(t, before...)); e.Status.Endpoints != endpoints {
		t.Errorf("endpoints were %q and are %q", endpoints, e.Status.Endpoints)
	}

	lost := w.list(t)[0]
	w.must(t, w.Delete(t.Context(), &lost))
	if e = w.settle(t, w.ready(t, lost)); e.Status.Endpoints != endpoints {
		t.Errorf("endpoints were %q and are %q", endpoints, e.Status.Endpoints)
	}
	if e = w.hang(t, e, members, now); e.Status.Endpoints != endpoints {
		t.Errorf("endpoints were %q and are %q", endpoints, e.Status.Endpoints)
	}

	w.must(t, w.Delete(t.Context(), e))
	w.settle(t, func(e *etcdv1.EtcdadmCluster) error {
		if c := meta.FindStatusCondition(e.Status.Conditions, etcdv1.EtcdEndpointsAvailable); c == nil || c.Reason != etcdv1.DeletingReason {
			return fmt.Errorf("the deletion is not reported: %+v", c)
		}
		return nil
	})
	if len(w.list(t)) != 3 {
		t.Error("machines were deleted although the cluster uses etcd")
	}
	w.must(t, w.Delete(t.Context(), &infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}}))
	w.settle(t, func(e *etcdv1.EtcdadmCluster) error {
		if devices, addresses := w.metal.Left(t); devices+addresses > 0 || e.Name != "" {
			return fmt.Errorf("%d devices and %d addresses are left of %q", devices, addresses, e.Name)
		}
		return nil
	})
}

// checkSecrets checks what Cluster API needs, and that machines don't get the key of the CA.
func (w *world) checkSecrets(t *testing.T) {
	t.Helper()
	for name, keys := range map[string]int{"c-managed-etcd": 2, "c-etcd": 1, "c-apiserver-etcd-client": 2} {
		secret := &corev1.Secret{}
		w.must(t, w.Get(t.Context(), ctrlclient.ObjectKey{Namespace: w.namespace, Name: name}, secret))
		if len(secret.Data) != keys || secret.Labels[clusterv1.ClusterNameLabel] != "c" || secret.Type != clusterv1.ClusterSecretType {
			t.Errorf("Secret %q has keys %d, labels %v and type %s", name, len(secret.Data), secret.Labels, secret.Type)
		}
	}
	ca := &corev1.Secret{}
	w.must(t, w.Get(t.Context(), ctrlclient.ObjectKey{Namespace: w.namespace, Name: "c-managed-etcd"}, ca))
	key := strings.Split(string(ca.Data[corev1.TLSPrivateKeyKey]), "\n")[1]
	for _, m := range w.list(t) {
		data := &corev1.Secret{}
		w.must(t, w.Get(t.Context(), ctrlclient.ObjectKeyFromObject(&m), data))
		if strings.Contains(string(data.Data["value"]), key) {
			t.Errorf("the userdata of machine %q contains the key of the CA", m.Name)
		}
	}
}

// TestCertificatesOfExternalEtcdAreRenewed renews them on request, and before they expire.
func TestCertificatesOfExternalEtcdAreRenewed(t *testing.T) {
	w := newWorld(t, 1)
	w.renew(t, w.settle(t, w.ready(t)))
	w.expire(t)
}

// renew requests new certificates for members and API servers, and checks that all are replaced and
// that endpoints and CA stay.
func (w *world) renew(t *testing.T, e *etcdv1.EtcdadmCluster) {
	t.Helper()
	before, client, ca := w.list(t), w.secret(t, "c-apiserver-etcd-client"), w.secret(t, "c-managed-etcd")
	since := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Second))
	e.Annotations[etcdv1.RenewMembersAnnotation], e.Annotations[etcdv1.RenewClientAnnotation] = since.UTC().Format(time.RFC3339), since.UTC().Format(time.RFC3339)
	w.must(t, w.Update(t.Context(), e))
	time.Sleep(time.Until(since.Time)) // Certificates contain seconds.
	after := w.settle(t, func(e *etcdv1.EtcdadmCluster) error {
		if s := e.Status.Certificates; s.Members == nil || !s.Members.Equal(&since) || s.Client == nil || !s.Client.Equal(&since) {
			return fmt.Errorf("renewed: %+v", s)
		}
		return w.ready(t, before...)(e)
	})
	if after.Status.Endpoints != e.Status.Endpoints {
		t.Errorf("endpoints were %q and are %q", e.Status.Endpoints, after.Status.Endpoints)
	}
	if now := w.secret(t, "c-apiserver-etcd-client"); bytes.Equal(now.Data[corev1.TLSCertKey], client.Data[corev1.TLSCertKey]) || now.UID != client.UID {
		t.Error("API servers have no new certificate")
	}
	if now := w.secret(t, "c-managed-etcd"); now.ResourceVersion != ca.ResourceVersion {
		t.Error("the CA has changed")
	}
	again := w.secret(t, "c-apiserver-etcd-client")
	w.reconcile(t, w.etcds, "c")
	if now := w.secret(t, "c-apiserver-etcd-client"); now.ResourceVersion != again.ResourceVersion {
		t.Error("another reconcile renewed the certificate of API servers again")
	}
}

// expire lets two thirds of the lifetime of one certificate pass.
func (w *world) expire(t *testing.T) {
	t.Helper()
	old := w.list(t)[0]
	before := old.DeepCopy()
	old.Annotations[etcdv1.ExpiresAnnotation] = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	w.must(t, w.Patch(t.Context(), &old, ctrlclient.MergeFrom(before)))
	w.settle(t, w.ready(t, old))
}

func (w *world) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	out := &corev1.Secret{}
	w.must(t, w.Get(t.Context(), ctrlclient.ObjectKey{Namespace: w.namespace, Name: name}, out))
	return out
}
