package manager_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// TestProviderComponentsInstall simulates what a bare API server lacks: the kubelet that starts the
// Deployment's command with its service account, and the controller that fills in the Service's
// endpoints. Everything else is as shipped.
func TestProviderComponentsInstall(t *testing.T) {
	server := kubetest.Start(t)
	t.Run("without them, a manager says what to do", func(t *testing.T) {
		failsToStart(t, []string{"--kubeconfig=" + server.Kubeconfig(t), "--install=false"}, "drover-system", "run with --install")
	})
	file := filepath.Join(t.TempDir(), "provider-components.yaml")
	if err := os.WriteFile(file, config.Render("registry.example/manager:v1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		kubectl(t, server, "apply", "-f", file)
	}
	kubectl(t, server, "apply", "-f", "testdata/infrastructure.yaml")

	m := startDeployed(t, server)
	m.awaitReady(t)
	ns := server.Namespace(t)
	kubectl(t, server, "apply", "-n", ns, "-f", "testdata/cluster.yaml")
	c := newClient(t, server.Config)
	eventually(t, func() error { return provisioned(t, c, ns) })
	kubectl(t, server, "delete", "-n", ns, "--wait=false", "machinedeployment/full", "clusters.cluster.x-k8s.io/full")
	eventually(t, func() error { return emptied(t, c, ns) })

	if lines := linesWith(m.Log(), "forbidden"); len(lines) > 0 {
		t.Errorf("the role does not suffice:\n%s", strings.Join(lines, "\n"))
	}
}

// provisioned reports whether every reconciler has finished up to the point where a real machine
// would boot.
func provisioned(t *testing.T, c client.Client, namespace string) error {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := c.List(t.Context(), machines, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(machines.Items) != 2 {
		return fmt.Errorf("%d machines, want a control plane and a worker", len(machines.Items))
	}
	if !slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool { return m.Spec.Bootstrap.DataSecretName != nil }) {
		return errors.New("no machine has bootstrap data yet")
	}
	return hasCondition(t, c, client.ObjectKey{Namespace: namespace, Name: "full"}, clusterv1.ClusterAvailableCondition)
}

// emptied reports whether deletion has progressed as far as possible: the finalizers of an
// unreachable control plane stay.
func emptied(t *testing.T, c client.Client, namespace string) error {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := c.List(t.Context(), machines, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(machines.Items) != 0 {
		return fmt.Errorf("%d machines still exist", len(machines.Items))
	}
	return nil
}

// startDeployed runs the Deployment's own arguments. Only ports differ, since several tests share a
// machine, and a kubeconfig replaces the token of a Pod.
func startDeployed(t *testing.T, server *kubetest.Server) *instance {
	t.Helper()
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: config.Namespace, Name: "drover-manager"}
	if err := newClient(t, server.Config).Get(t.Context(), key, d); err != nil {
		t.Fatal(err)
	}
	container := d.Spec.Template.Spec.Containers[0]
	if len(container.Command) != 1 || container.Command[0] != "/manager" {
		t.Fatalf("command %q", container.Command)
	}
	i := &instance{health: kubetest.FreeAddress(t), metrics: kubetest.FreeAddress(t), webhook: kubetest.FreeAddress(t)}
	replace := strings.NewReplacer(":9440", portOf(i.health), ":8443", portOf(i.metrics), ":9443", portOf(i.webhook))
	args := []string{"--kubeconfig=" + kubetest.Kubeconfig(t, deployedIdentity(t, server, d))}
	for _, arg := range container.Args {
		args = append(args, replace.Replace(arg))
	}
	publish(t, server, i.webhook)
	i.Process = kubetest.StartProcess(t, managertest.Command(t, args))
	return i
}

func deployedIdentity(t *testing.T, server *kubetest.Server, d *appsv1.Deployment) *rest.Config {
	t.Helper()
	cfg := rest.AnonymousClientConfig(server.Config)
	cfg.BearerToken = token(t.Context(), t, server, d.Namespace, d.Spec.Template.Spec.ServiceAccountName)
	return cfg
}

// publish points the webhook Service to this machine. An endpoint can't be on loopback.
func publish(t *testing.T, server *kubetest.Server, webhook string) {
	t.Helper()
	_, port, err := net.SplitHostPort(webhook)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "webhook", Labels: map[string]string{discoveryv1.LabelServiceName: config.WebhookService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{hostAddress(t)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("webhook"), Port: ptr.To(int32(number))}},
	}
	_, err = server.Clientset(t).DiscoveryV1().EndpointSlices(config.Namespace).Create(t.Context(), slice, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func hostAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if ip, ok := addr.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback, which a Service can't lead to")
	return ""
}

func portOf(addr string) string { return addr[strings.LastIndex(addr, ":"):] }

func kubectl(t *testing.T, server *kubetest.Server, args ...string) {
	t.Helper()
	cmd := server.Kube.Command(t.Context(), "kubectl", append([]string{"--kubeconfig=" + server.Kubeconfig(t)}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%.3000s", strings.Join(args, " "), err, out)
	}
}
