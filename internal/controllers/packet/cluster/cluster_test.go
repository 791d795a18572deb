package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

type world struct {
	*packettest.World
	*Controller
}

// newWorld runs the test in parallel with others, which share only the API server.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return withController(packettest.NewWorld(t))
}

func withController(w *packettest.World) *world {
	return &world{w, &Controller{Client: w.Client, Access: w.Access, Events: w.Events, Clock: w.Clock, BGP: BGP{ASN: 65000}}}
}

// run reconciles a cluster and returns it with its condition.
func (w *world) run(t *testing.T, name string) (*infrav1.PacketCluster, string) {
	t.Helper()
	w.World.Reconcile(t, w.Controller, name)
	c := &infrav1.PacketCluster{}
	w.Gone(t, name, c)
	for _, condition := range c.Status.Conditions {
		if condition.Reason == "" || strings.Contains(condition.Message, packettest.Token) {
			t.Errorf("condition: %+v", condition)
		}
	}
	return c, packettest.Condition(c, infrav1.NetworkInfrastructureReady)
}

func (w *world) remove(t *testing.T, name string) bool {
	t.Helper()
	c := &infrav1.PacketCluster{}
	w.Read(t, name, c)
	if err := w.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.run(t, name)
	return w.Gone(t, name, c)
}

func begins(t *testing.T, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) {
		t.Errorf("condition is %q, want it to begin with %q", got, want)
	}
}

func TestClusterGetsAnEndpointAddress(t *testing.T) {
	w := newWorld(t)
	w.Cluster(t, "c", func(c *infrav1.PacketCluster) {
		c.Spec.FailureDomains = []infrav1.PacketFailureDomain{{Metro: "da", ControlPlane: ptr.To(true)}, {Metro: "sv"}}
	})
	c, condition := w.run(t, "c")
	begins(t, condition, "True AddressReserved")
	ip := w.API.Addresses(w.Project)[0]
	if diff := cmp.Diff(infrav1.APIEndpoint{Host: ip.Address, Port: 6443}, c.Spec.ControlPlaneEndpoint); diff != "" {
		t.Errorf("endpoint (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cluster-api-provider-packet:cluster-id:c", "capp:namespace:" + w.Namespace}, ip.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if !c.Status.Ready || !ptr.Deref(c.Status.Initialization.Provisioned, false) || c.Spec.VIPManager != infrav1.VIPManagerCPEM ||
		c.Spec.AddressReclaimPolicy != infrav1.AddressRelease {
		t.Errorf("cluster: %+v", c)
	}
	domains := []clusterv1.FailureDomain{{Name: "da", ControlPlane: ptr.To(true)}, {Name: "sv", ControlPlane: ptr.To(false)}}
	if diff := cmp.Diff(domains, c.Status.FailureDomains); diff != "" {
		t.Errorf("failure domains (-want +got):\n%s", diff)
	}
}

func TestIdleClusterMakesNoRequests(t *testing.T) {
	w := newWorld(t)
	w.Cluster(t, "c", nil)
	w.run(t, "c")
	before, _ := w.run(t, "c")
	w.API.Requests()
	after, _ := w.run(t, "c")
	if asked := w.API.Requests(); len(asked) > 0 || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("asked %v, resource version %s after %s", asked, after.ResourceVersion, before.ResourceVersion)
	}
}

func TestLostResponseReservesNoSecondAddress(t *testing.T) {
	for name, fault := range map[string]packettest.Fault{"closed": {After: true}, "truncated": {Truncate: true}, "500": {After: true, Status: 500}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Cluster(t, "c", nil)
			fault.Method, fault.Path, fault.Times = "POST", "/ips", 1
			w.API.Fail(fault)
			w.run(t, "c")
			c, _ := w.run(t, "c")
			if all := w.API.Addresses(w.Project); len(all) != 1 || c.Spec.ControlPlaneEndpoint.Host != all[0].Address {
				t.Errorf("%d addresses, endpoint %+v", len(all), c.Spec.ControlPlaneEndpoint)
			}
		})
	}
}

func TestFaultsAreReportedAndRecover(t *testing.T) {
	for name, tc := range map[string]struct {
		fault packettest.Fault
		want  string
	}{
		"rate limit":            {packettest.Fault{Status: 429}, "False APIRateLimited"},
		"403 with an HTML page": {packettest.Fault{Status: 403, Body: "<html>"}, "False APIRateLimited"},
		"500":                   {packettest.Fault{Status: 500}, "False APIUnavailable"},
		"closed connection":     {packettest.Fault{}, "False APIUnavailable"},
		"401":                   {packettest.Fault{Status: 401, Body: `{"error":"Invalid authentication token"}`}, "False CredentialsInvalid"},
		"quota exceeded":        {packettest.Fault{Method: "POST", Path: "/ips", Status: 422, Body: `{"errors":["Request exceeds the quota of elastic addresses"]}`}, "False QuotaExceeded: Reserving an address failed: Request exceeds the quota"},
		"approval required":     {packettest.Fault{Method: "POST", Path: "/ips", Status: 422, Body: `{"errors":["Manual approval is required"]}`}, "False QuotaExceeded"},
		"failed lookup":         {packettest.Fault{Method: "GET", Path: "/ips", Status: 500}, "False APIUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Cluster(t, "c", nil)
			w.API.AddAddress(packettest.Address{Project: w.Project, Tags: []string{"cluster-api-provider-packet:cluster-id:other"}})
			w.API.Fail(tc.fault)
			c, condition := w.run(t, "c")
			begins(t, condition, tc.want)
			if !c.Spec.ControlPlaneEndpoint.IsZero() {
				t.Errorf("endpoint is %+v", c.Spec.ControlPlaneEndpoint)
			}
			w.API.Heal()
			w.Pass(time.Hour)
			_, condition = w.run(t, "c")
			begins(t, condition, "True AddressReserved")
			w.API.Fail(tc.fault)
			w.Pass(time.Hour)
			if again, _ := w.run(t, "c"); !again.Status.Ready {
				t.Error("a cluster that was ready is not any more")
			}
		})
	}
}

func TestForeignAddressIsNeverUsed(t *testing.T) {
	w := newWorld(t)
	other := withController(w.Sibling(t))
	for _, one := range []*world{w, other} {
		one.Cluster(t, "c", nil)
	}
	w.API.AddAddress(packettest.Address{Project: w.Project, Tags: []string{"cluster-api-provider-packet:cluster-id:somebody"}})
	a, _ := w.run(t, "c")
	b, _ := other.run(t, "c")
	if a.Spec.ControlPlaneEndpoint.Host == b.Spec.ControlPlaneEndpoint.Host || len(w.API.Addresses(w.Project)) != 3 {
		t.Fatalf("endpoints %v and %v", a.Spec.ControlPlaneEndpoint, b.Spec.ControlPlaneEndpoint)
	}
	if !w.remove(t, "c") {
		t.Fatal("the cluster still exists, want it deleted")
	}
	left := w.API.Addresses(w.Project)
	if len(left) != 2 || left[1].Address != b.Spec.ControlPlaneEndpoint.Host {
		t.Errorf("left: %+v", left)
	}
}

func TestAddressIsReleasedWithTheCluster(t *testing.T) {
	for policy, left := range map[infrav1.AddressReclaimPolicy]int{"": 0, infrav1.AddressRelease: 0, infrav1.AddressRetain: 1} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			w := newWorld(t)
			w.Cluster(t, "c", func(c *infrav1.PacketCluster) { c.Spec.AddressReclaimPolicy = policy })
			w.run(t, "c")
			if !w.remove(t, "c") {
				t.Fatal("the cluster still exists, want it deleted")
			}
			if got := w.API.Addresses(w.Project); len(got) != left {
				t.Errorf("got %d addresses, want %d", len(got), left)
			}
		})
	}
	t.Run("but not before its machines are gone, nor on an error", func(t *testing.T) {
		w := newWorld(t)
		w.Cluster(t, "c", nil)
		w.run(t, "c")
		m := w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		if w.remove(t, "c") {
			t.Fatal("gone before its machine")
		}
		if err := w.Delete(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.API.Fail(packettest.Fault{Status: 500})
		_, condition := w.run(t, "c")
		begins(t, condition, "Unknown APIUnavailable")
		if len(w.API.Addresses(w.Project)) != 1 {
			t.Fatal("the address was released, want it kept")
		}
		w.API.Heal()
		w.run(t, "c")
		if !w.Gone(t, "c", &infrav1.PacketCluster{}) || len(w.API.Addresses(w.Project)) != 0 {
			t.Error("the cluster or its address still exists, want both deleted")
		}
	})
}

// TestAddressThatOthersUseIsNotReleased: a cluster adopts an address of the former provider by its
// name alone, which others may use.
func TestAddressThatOthersUseIsNotReleased(t *testing.T) {
	for name, tt := range map[string]struct {
		assigned bool
		left     int
	}{"a device has it": {true, 1}, "no device has it": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ip := packettest.Address{Project: w.Project, Tags: []string{"cluster-api-provider-packet:cluster-id:c"}}
			if tt.assigned {
				ip.Assignment, ip.Device = "assignment", w.API.AddDevice(packettest.Device{Project: w.Project, State: "active"})
			}
			ip = w.API.AddAddress(ip)
			w.Cluster(t, "c", nil)
			if c, _ := w.run(t, "c"); c.Spec.ControlPlaneEndpoint.Host != ip.Address {
				t.Fatalf("endpoint %v", c.Spec.ControlPlaneEndpoint)
			}
			if !w.remove(t, "c") {
				t.Fatal("the cluster still exists, want it deleted")
			}
			left := w.API.Addresses(w.Project)
			if len(left) != tt.left || tt.assigned && left[0].Device != ip.Device {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

func TestExistingAddressIsKept(t *testing.T) {
	old := []string{"cluster-api-provider-packet:cluster-id:c"}
	t.Run("if it can be no other cluster's", func(t *testing.T) {
		w := newWorld(t)
		ip := w.API.AddAddress(packettest.Address{Project: w.Project, Tags: old})
		w.Cluster(t, "c", nil)
		c, _ := w.run(t, "c")
		if c.Spec.ControlPlaneEndpoint.Host != ip.Address || len(w.API.Addresses(w.Project)) != 1 {
			t.Errorf("endpoint %v", c.Spec.ControlPlaneEndpoint)
		}
	})
	t.Run("but not if a namesake may own it", func(t *testing.T) {
		w := newWorld(t)
		ip := w.API.AddAddress(packettest.Address{Project: w.Project, Tags: old})
		w.Sibling(t).Cluster(t, "c", nil)
		w.Cluster(t, "c", nil)
		c, _ := w.run(t, "c")
		if c.Spec.ControlPlaneEndpoint.Host == ip.Address {
			t.Error("took an address that may be another cluster's")
		}
	})
	t.Run("and two of them are one too many", func(t *testing.T) {
		w := newWorld(t)
		w.API.AddAddress(packettest.Address{Project: w.Project, Tags: old})
		w.API.AddAddress(packettest.Address{Project: w.Project, Tags: old})
		w.Cluster(t, "c", nil)
		_, condition := w.run(t, "c")
		begins(t, condition, "False AddressAmbiguous")
	})
}

func TestAddressOfARunningClusterIsNotReplaced(t *testing.T) {
	w := newWorld(t)
	w.Cluster(t, "c", nil)
	c, _ := w.run(t, "c")
	host := c.Spec.ControlPlaneEndpoint.Host
	client, err := w.World.Access.For(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.DeleteAddress(t.Context(), c.Status.Endpoint.ReservationID); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Hour)
	c, condition := w.run(t, "c")
	begins(t, condition, "False AddressLost")
	if c.Spec.ControlPlaneEndpoint.Host != host || len(w.API.Addresses(w.Project)) != 0 {
		t.Error("another address was taken")
	}
}

func TestEMLBIsAcceptedAndExplained(t *testing.T) {
	w := newWorld(t)
	emlb := func(c *infrav1.PacketCluster) { c.Spec.VIPManager = infrav1.VIPManagerEMLB }
	w.Cluster(t, "bare", emlb)
	c, condition := w.run(t, "bare")
	begins(t, condition, "False LoadBalancerServiceGone: Equinix Metal shut down its load balancers")
	if c.Status.Ready {
		t.Error("ready")
	}
	w.Cluster(t, "own", func(c *infrav1.PacketCluster) {
		emlb(c)
		c.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "lb.example", Port: 443}
	})
	c, condition = w.run(t, "own")
	begins(t, condition, "True ExternalEndpoint")
	if !c.Status.Ready || c.Spec.ControlPlaneEndpoint.Port != 443 || len(w.API.Requests()) > 0 {
		t.Errorf("cluster: %+v", c)
	}
	if !w.remove(t, "own") {
		t.Error("it can't be deleted")
	}
}

func TestKubeVIPEnablesBGPOnce(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b"} {
		w.Cluster(t, name, func(c *infrav1.PacketCluster) { c.Spec.VIPManager = infrav1.VIPManagerKubeVIP })
		w.run(t, name)
	}
	posts := slices.DeleteFunc(w.API.Requests(), func(r string) bool { return !strings.HasSuffix(r, "/bgp-configs") })
	if !w.API.BGP(w.Project) || len(posts) != 1 {
		t.Errorf("enabled %t by %d requests", w.API.BGP(w.Project), len(posts))
	}
}

func TestCredentialsBelongToTheCluster(t *testing.T) {
	w := newWorld(t)
	w.World.Access.Default.Token, w.World.Access.Default.URL = "wrong", "http://127.0.0.1:1"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "key"},
		Data:       map[string][]byte{"PACKET_API_KEY": []byte("rotated away\n"), "METAL_API_URL": []byte(w.API.URL)},
	}
	if err := w.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.Cluster(t, "c", func(c *infrav1.PacketCluster) { c.Spec.CredentialsRef = &infrav1.CredentialsReference{Name: "key"} })
	_, condition := w.run(t, "c")
	begins(t, condition, "False CredentialsInvalid")

	w.Read(t, "key", secret)
	if _, ok := secret.Labels["clusterctl.cluster.x-k8s.io/move"]; !ok {
		t.Error("the Secret would stay behind when the cluster is moved")
	}
	secret.Data["PACKET_API_KEY"] = []byte(packettest.Token)
	if err := w.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	_, condition = w.run(t, "c")
	begins(t, condition, "True AddressReserved")
}

func TestManagerTokenIsNotSentToUserURLs(t *testing.T) {
	w := newWorld(t)
	thief := packettest.New(t)
	w.Cluster(t, "c", func(c *infrav1.PacketCluster) { c.Spec.APIURL = thief.URL })
	_, condition := w.run(t, "c")
	begins(t, condition, "False CredentialsInvalid: The manager's credentials are not for spec.apiURL")
	if asked := thief.Requests(); len(asked) > 0 {
		t.Errorf("asked %v", asked)
	}
}
