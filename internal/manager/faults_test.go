package manager_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/faultproxy"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// faulty is an API server that its managers reach only through a proxy that injects faults.
type faulty struct {
	t          *testing.T
	server     *kubetest.Server
	proxy      *faultproxy.Proxy
	kubeconfig string
	webhook    string

	mu      sync.Mutex
	manager *instance
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{t: t, server: kubetest.Start(t), webhook: kubetest.FreeAddress(t)}
	if err := install.Apply(t.Context(), f.server.Config, install.Options{WebhookURL: "https://" + f.webhook}); err != nil {
		t.Fatal(err)
	}
	// Objects that Cluster API could not clean up belong to what is deleted with the cluster.
	kubetest.StartProcess(t, f.server.Kube.Command(t.Context(), "kube-controller-manager",
		"--kubeconfig="+f.server.Kubeconfig(t), "--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0"))
	f.proxy = faultproxy.New(t, f.server.Config)
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
// cluster must get exactly its machines, each with one device, and leave nothing behind.
func TestClustersSurviveFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	f := newFaulty(t)
	garbage := faultproxy.Respond(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, `{"kind":"Cluster","metadata":{"name":`)
	busy := faultproxy.Respond(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)
	failed := faultproxy.Respond(http.StatusInternalServerError, nil, "etcdserver: request timed out")
	for _, tc := range []struct {
		name  string
		fault *faultproxy.Fault
	}{
		{"responses to writes are lost", &faultproxy.Fault{Matches: faultproxy.IsWrite, Every: 5, Strike: faultproxy.Lose()}},
		{"the API server fails, is busy or sends garbage", &faultproxy.Fault{
			Matches: faultproxy.IsCall, Every: 10, Strike: faultproxy.Alternate(failed, busy, garbage),
		}},
		{"the API server is slow", &faultproxy.Fault{Matches: faultproxy.IsCall, Every: 4, Strike: faultproxy.Delay(500 * time.Millisecond)}},
		{"watches end", &faultproxy.Fault{Matches: faultproxy.IsWatch, Strike: faultproxy.Cut(2 * time.Second)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f.proxy.Inject(tc.fault)
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

// TestClustersSurviveKillsAfterEveryCreation kills the manager whenever it has created an object,
// before it sees the response.
func TestClustersSurviveKillsAfterEveryCreation(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	f := newFaulty(t)
	kills := make(chan struct{}, 1)
	var pending atomic.Bool
	f.proxy.Inject(&faultproxy.Fault{Matches: faultproxy.IsCreate, Strike: faultproxy.LoseCreated(func() {
		if pending.CompareAndSwap(false, true) {
			kills <- struct{}{}
		}
	})})
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
	t.Logf("killed %d times", killed)
	if killed < 5 {
		t.Errorf("killed only %d times", killed)
	}
}

// TestFrozenLeaderDoesNotWriteAgain stops a leader until another one has taken over, and continues
// it in the middle of a cluster's creation.
func TestFrozenLeaderDoesNotWriteAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	f := newFaulty(t)
	f.manager.Stop(t)
	clients := f.server.Clientset(t)
	first := launch(t, f.kubeconfig, append([]string{"--webhook-addr=" + f.webhook}, quick...)...)
	first.awaitReady(t)
	leader := awaitLeader(t, clients, "")
	second := launch(t, f.kubeconfig, quick...)
	second.awaitReady(t)
	c := newFleetClusterOn(t, f.server, 1, 1, faultyVersion)
	first.Signal(t, syscall.SIGSTOP)
	awaitLeader(t, clients, leader)
	first.Signal(t, syscall.SIGCONT)
	<-first.Done()
	// The standby of a real installation serves webhooks all the time.
	third := launch(t, f.kubeconfig, append([]string{"--webhook-addr=" + f.webhook}, quick...)...)
	third.awaitReady(t)
	c.awaitMachines(1, 1, faultyVersion)
	c.deleteCompletely()
}
