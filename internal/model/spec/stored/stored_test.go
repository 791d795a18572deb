// Package stored_test stores specs on a real API server. It is separate from the package under
// test, which is fuzzed without Kubernetes clients.
package stored_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func connect(t *testing.T) (client.Client, string) {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	if err := anywherev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, server.Namespace(t)
}

// load reads a file of the package's tests into a namespace.
func load(t *testing.T, name, namespace string) *spec.Config {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, problems := spec.Check(data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, o := range config.Objects() {
		o.SetNamespace(namespace)
	}
	return config
}

func apply(ctx context.Context, t *testing.T, c client.Client, config *spec.Config) {
	t.Helper()
	for _, o := range config.Objects() {
		o := o.DeepCopyObject().(client.Object)
		//nolint:staticcheck // kinds without apply configurations are applied as patches
		if err := c.Patch(ctx, o, client.Apply, client.FieldOwner(anywherev1.FieldManagerCLI)); err != nil {
			t.Fatalf("applying %s %q: %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
}

// The schema keeps every field, and applying twice writes nothing.
func TestSpecsAreStoredUnchanged(t *testing.T) {
	for _, name := range []string{"docker", "packet"} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			c, namespace := connect(t)
			config := load(t, name, namespace)
			apply(ctx, t, c, config)

			stored := &anywherev1.Cluster{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(config.Cluster), stored); err != nil {
				t.Fatal(err)
			}
			version := stored.ResourceVersion
			gathered, err := spec.Gather(ctx, c, stored)
			if err != nil {
				t.Fatal(err)
			}
			spec.Default(gathered)
			want, err := spec.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			got, err := spec.Marshal(gathered)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("what was stored (-want +got):\n%s", diff)
			}
			if problems := spec.Validate(gathered); len(problems) > 0 {
				t.Errorf("a spec that is valid in a file is invalid once stored: %v", problems)
			}

			apply(ctx, t, c, config)
			if err := c.Get(ctx, client.ObjectKeyFromObject(config.Cluster), stored); err != nil {
				t.Fatal(err)
			}
			if stored.ResourceVersion != version {
				t.Errorf("applying the same again wrote version %s after %s", stored.ResourceVersion, version)
			}
		})
	}
}

func TestGatherListsMissingObjects(t *testing.T) {
	ctx := t.Context()
	c, namespace := connect(t)
	config := load(t, "packet", namespace)
	apply(ctx, t, c, config)
	for _, o := range []client.Object{config.Machines["large"], config.OIDC["corp"]} {
		if err := c.Delete(ctx, o.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
	gathered, err := spec.Gather(ctx, c, config.Cluster)
	var missing *spec.MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("Gather gave %v, not a MissingError", err)
	}
	if diff := cmp.Diff([]string{"PacketMachineConfig/large", "OIDCConfig/corp"}, missing.Objects); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if gathered.Machines["small"] == nil || gathered.Packet == nil || gathered.Flux == nil {
		t.Errorf("existing objects are missing: %+v", gathered)
	}
}

func TestGatherReturnsErrorsOfTheServer(t *testing.T) {
	c, namespace := connect(t)
	config := load(t, "packet", namespace)
	apply(t.Context(), t, c, config)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gathered, err := spec.Gather(ctx, c, config.Cluster)
	var missing *spec.MissingError
	if gathered != nil || err == nil || errors.As(err, &missing) || !errors.Is(err, context.Canceled) {
		t.Errorf("Gather gave %v and %v", gathered, err)
	}
}

func TestStatusIsStored(t *testing.T) {
	ctx := t.Context()
	c, namespace := connect(t)
	config := load(t, "docker", namespace)
	apply(ctx, t, c, config)
	cluster := config.Cluster.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	want := anywherev1.ClusterStatus{
		FailureMessage: ptr.To("names what is not there"), FailureReason: ptr.To(anywherev1.MissingDependentObjectsReason),
		Version: "v1.36.3", ControlPlane: "1/1", Workers: "0/1",
		ClusterCertificateInfo: []anywherev1.ClusterCertificateInfo{{Machine: "mgmt-1", ExpiresInDays: 364}},
		ReconciledGeneration:   1, ChildrenReconciledGeneration: 2, ObservedGeneration: 3,
		Conditions: []metav1.Condition{{
			Type: anywherev1.Ready, Status: metav1.ConditionFalse, Reason: anywherev1.ScalingUpReason, Message: "Scaling up worker nodes, 1 expected (0 actual)",
			LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}},
	}
	cluster.Status = *want.DeepCopy()
	if err := c.Status().Update(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, cluster.Status, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestSchemaRejectsWrongTypes(t *testing.T) {
	c, namespace := connect(t)
	config := load(t, "docker", namespace)
	config.Cluster.Spec.ControlPlaneConfiguration.KubeletConfiguration = &runtime.RawExtension{Raw: []byte(`"fast"`)}
	if err := c.Create(t.Context(), config.Cluster); !apierrors.IsInvalid(err) {
		t.Errorf("a kubelet that is no object gave %v", err)
	}
}
