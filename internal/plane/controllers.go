package plane

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/base/background"
	"github.com/drover-dev/drover/internal/base/version"
)

// controllers are the Kubernetes controllers that a management cluster needs. Those for Pods, nodes
// and volumes have nothing to do here.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"garbage-collector-controller",
	"legacy-serviceaccount-token-cleaner-controller",
	"namespace-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"validatingadmissionpolicy-status-controller",
}

func (p *Plane) controllerManager() Component {
	port := p.config.Ports.ControllerManager
	return Component{
		Name:    "kube-controller-manager",
		Command: func() *exec.Cmd { return p.program("kube-controller-manager", p.controllerManagerArgs()...) },
		Probe:   func(ctx context.Context) error { return p.probes.get(ctx, loopbackURL(port)+"/healthz") },
	}
}

func (p *Plane) controllerManagerArgs() []string {
	h := p.home
	return []string{
		"--kubeconfig=" + h.componentKubeconfig("controller-manager"),
		// Its port serves only health, to the supervisor.
		"--authentication-skip-lookup=true",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.config.Ports.ControllerManager),
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + h.keyFile("service-account"),
		"--root-ca-file=" + h.certFile("ca"),
		"--profiling=false",
	}
}

// manager runs Drover's manager as a separate process, so that the API outlives it.
func (p *Plane) manager() Component {
	ports := p.config.Ports
	return Component{
		Name:    "manager",
		Version: version.Get().Version,
		Command: func() *exec.Cmd {
			cmd := exec.Command(background.Self(), p.managerArgs()...)
			cmd.Args[0] = "drover"
			cmd.Env = p.managerEnvironment()
			return cmd
		},
		Probe: func(ctx context.Context) error {
			return p.probes.get(ctx, "http://"+loopback(ports.ManagerHealth)+"/readyz")
		},
	}
}

func (p *Plane) managerArgs() []string {
	ports := p.config.Ports
	args := []string{
		"manager",
		"--kubeconfig=" + p.home.componentKubeconfig("manager"),
		"--install=false",
		"--leader-elect=false",
		"--health-addr=" + loopback(ports.ManagerHealth),
		"--metrics-addr=" + loopback(ports.ManagerMetrics),
		"--webhook-addr=" + loopback(ports.ManagerWebhook),
		"--webhook-client-ca=" + p.home.certFile("ca"),
		"--chart-cache=" + p.home.path("charts"),
		// The API server is the plane's own and protects itself.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--registry-url=" + p.config.RegistryURL(),
		"--registry-ca=" + p.home.certFile("ca"),
		// References to other registries are resolved here first.
		"--package-mirror=*=" + p.config.registryHost(),
		"--package-key=" + p.home.BundlePublicKey(),
	}
	if p.gitOps.Load() {
		args = append(args, "--gitops", "--git-webhook-addr="+net.JoinHostPort(p.config.APIAddress, strconv.Itoa(ports.GitWebhook)))
	}
	return args
}

// loopbackAddress is the address of internal connections.
const loopbackAddress = "127.0.0.1"

func loopback(port int) string { return net.JoinHostPort(loopbackAddress, strconv.Itoa(port)) }
