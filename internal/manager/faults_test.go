package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/faultproxy"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/lagtest"
)

// faulty is an API server that its managers reach only through a proxy that injects faults.
type faulty struct {
	t          *testing.T
	server     *kubetest.Server
	proxy      *faultproxy.Proxy
	kubeconfig string
	webhook    string
	// watches delays those of the objects that controllers write.
	watches lagtest.Watches

	mu      sync.Mutex
	manager *instance
}

// faultServer is the API server of all tests with faults, which run one after the other: each has a
// manager of its own, and leaves no objects that the next one would reconcile.
var faultServer struct {
	sync.Once
	kubetest.Servers
	webhook string
}

// startFaultServer starts the server and its garbage collector: objects that Cluster API could not
// clean up belong to what is deleted with the cluster.
func startFaultServer(t *testing.T) *kubetest.Server {
	t.Helper()
	faultServer.Start(t, 1)
	server := faultServer.All()[0]
	faultServer.Do(func() {
		faultServer.webhook = kubetest.FreeAddress(t)
		if err := install.Apply(t.Context(), server.Config, install.Options{WebhookURL: "https://" + faultServer.webhook}); err != nil {
			t.Fatal(err)
		}
		server.StartProcess(t, server.Kube.Command(context.Background(), "kube-controller-manager",
			"--kubeconfig="+server.Kubeconfig(t), "--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0"))
	})
	return server
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{t: t, server: startFaultServer(t), webhook: faultServer.webhook}
	f.watches.Resources = []string{"machines", "machinesets", "packetmachines", "packetclusters", "kubeadmconfigs", "secrets"}
	behind := rest.CopyConfig(f.server.Config)
	behind.Wrap(f.watches.Wrap)
	f.proxy = faultproxy.New(t, behind)
	f.kubeconfig = kubetest.Kubeconfig(t, f.proxy.Config())
	f.start()
	return f
}

func (f *faulty) start() {
	f.t.Helper()
	f.manager = launch(f.t, f.kubeconfig, "--install=false", "--webhook-addr="+f.webhook)
	f.manager.awaitReady(f.t)
}

// restart kills the manager, as a power failure would, and starts it again.
func (f *faulty) restart() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manager.Kill()
	f.start()
}

// TestClustersSurviveFaults creates and deletes a cluster while a fault is injected. Every
// cluster must get exactly its machines, each with one device, and leave nothing behind. Faults
// that need another setup have tests of their own:
//
//	fault                                        tests
//	a kill after every write                     TestClustersSurviveKillsAfterEveryWrite
//	two managers at once                         TestFrozenLeaderDoesNotWriteAgain, TestOneManagerLeadsAndAnotherTakesOver
//	clocks that jump a year                      TestOneDevicePerMachine, TestClockDoesNotEndTimeouts, TestClockDoesNotDelayRetries
//	a full disk                                  TestDiskFullDuringStart, TestFullDiskFailsTheRun, TestFullDiskOnlyDisablesTheCache
//	the Packet API fails at random               TestOneDevicePerMachine
//	huge and slow responses of workload clusters TestDecompressedSizeIsBounded, TestSlowResponsesTimeOut
func TestClustersSurviveFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	f := newFaulty(t)
	garbage := faultproxy.Respond(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, `{"kind":"Cluster","metadata":{"name":`)
	busy := faultproxy.Respond(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)
	failed := faultproxy.Respond(http.StatusInternalServerError, nil, "etcdserver: request timed out")
	huge := faultproxy.Flood(16 << 20)
	for _, tc := range []struct {
		name  string
		fault *faultproxy.Fault
		lag   time.Duration
	}{
		{"responses to writes are lost", &faultproxy.Fault{Matches: faultproxy.IsWrite, Every: 5, Strike: faultproxy.Lose()}, 0},
		{"the API server fails, is busy, sends garbage or far too much", &faultproxy.Fault{
			Matches: faultproxy.IsCall, Every: 10, Strike: faultproxy.Alternate(failed, busy, garbage, huge),
		}, 0},
		{"the API server is slow", &faultproxy.Fault{Matches: faultproxy.IsCall, Every: 4, Strike: faultproxy.Delay(500 * time.Millisecond)}, 0},
		{"watches end", &faultproxy.Fault{Matches: faultproxy.IsWatch, Strike: faultproxy.Cut(2 * time.Second)}, 0},
		{"watches lag, and writes fail", &faultproxy.Fault{Matches: faultproxy.IsWrite, Every: 20, Strike: failed}, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f.watches.Set(tc.lag)
			f.proxy.Inject(tc.fault)
			defer f.watches.Set(0)
			defer f.proxy.Inject(nil)
			f.liveThrough(t)
			if tc.fault.Struck() == 0 {
				t.Error("the fault never struck")
			}
		})
	}
}

const faultyVersion = "v1.36.3"

// liveThrough creates and deletes a cluster.
func (f *faulty) liveThrough(t *testing.T) {
	t.Helper()
	c := newFleetClusterOn(t, f.server, 1, 1, faultyVersion)
	c.awaitMachines(1, 1, faultyVersion)
	c.deleteCompletely()
}

// TestClustersSurviveKillsAfterEveryWrite kills the manager whenever it has created an object, and
// after the first write of every other kind, before it sees the response.
func TestClustersSurviveKillsAfterEveryWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	f := newFaulty(t)
	kills := make(chan struct{}, 1)
	var pending atomic.Bool // a manager is being killed or starts
	var survived sync.Map   // kinds of writes
	f.proxy.Inject(&faultproxy.Fault{
		Matches: func(r *http.Request) bool {
			if !faultproxy.IsWrite(r) || pending.Load() {
				return false
			}
			_, known := survived.Load(faultproxy.Kind(r))
			return faultproxy.IsCreate(r) || !known
		},
		Strike: faultproxy.LoseWritten(func(r *http.Request) {
			if pending.CompareAndSwap(false, true) {
				survived.Store(faultproxy.Kind(r), true)
				kills <- struct{}{}
			}
		}),
	})
	var killed int
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-kills:
				f.restart()
				killed++
				pending.Store(false)
			}
		}
	}()
	f.liveThrough(t)
	close(done)
	<-ended
	var kinds []string
	survived.Range(func(kind, _ any) bool { kinds = append(kinds, kind.(string)); return true })
	slices.Sort(kinds)
	t.Logf("killed %d times, after %s", killed, strings.Join(kinds, ", "))
	for _, verb := range []string{http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if !slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(kind, verb) }) {
			t.Errorf("never killed after a %s", verb)
		}
	}
	if killed < 15 {
		t.Errorf("killed only %d times", killed)
	}
}

// TestFrozenLeaderDoesNotWriteAgain freezes a leader when the last part of a worker Machine was
// created and the Machine itself was not, until another leader has taken over and deleted that part
// as an orphan. The Machine must not follow when the first leader thaws. The new leader serves the
// webhooks all the time, as the standby of a real installation does.
func TestFrozenLeaderDoesNotWriteAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	f := newFaulty(t)
	f.manager.Stop(t)
	clients := f.server.Clientset(t)
	first := launch(t, f.kubeconfig, quick...)
	first.awaitReady(t)
	leader := awaitLeader(t, clients, "")
	second := launch(t, kubetest.Kubeconfig(t, f.server.Config), append([]string{"--webhook-addr=" + f.webhook}, quick...)...)
	second.awaitReady(t)

	part := make(chan string, 1)
	thaw := make(chan struct{})
	var thawed atomic.Bool
	fault := &faultproxy.Fault{
		Matches: func(r *http.Request) bool {
			return thawed.Load() && faultproxy.IsWrite(r) || isWorkerPart(r)
		},
		Strike: func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if thawed.Load() {
				t.Errorf("the former leader sent %s %s", r.Method, r.URL.Path)
			}
			answer := httptest.NewRecorder()
			forward.ServeHTTP(answer, r)
			select {
			case part <- path.Base(r.URL.Path):
				first.Signal(t, syscall.SIGSTOP)
				<-thaw
			default:
			}
			faultproxy.Respond(answer.Code, answer.Header(), answer.Body.String())(w, r, forward)
		},
	}
	f.proxy.Inject(fault)
	c := newFleetClusterOn(t, f.server, 1, 1, faultyVersion)
	name := <-part
	awaitLeader(t, clients, leader)
	eventually(t, func() error {
		if err := c.get(name, &infrav1.PacketMachine{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("PacketMachine %s without a Machine is still there: %w", name, err)
		}
		return nil
	})
	thawed.Store(true)
	close(thaw)
	first.Signal(t, syscall.SIGCONT)
	<-first.Done()
	c.awaitMachines(1, 1, faultyVersion)
	c.deleteCompletely()
}

// isWorkerPart reports whether this is the last request by which a MachineSet creates the
// PacketMachine of a worker: after it applied the object, it gives up the ownership of labels.
func isWorkerPart(r *http.Request) bool {
	return faultproxy.Kind(r) == "PATCH packetmachines" && strings.Contains(path.Base(r.URL.Path), "-worker-") &&
		!strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
}
