package plane

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/kube/flux"
)

// gitOpsStage is the stage that installs the API of Flux.
const gitOpsStage = "gitops"

// fluxUser is the user name of a Flux controller: that of its ServiceAccount, so that one role
// binding serves it here and in a Pod.
func fluxUser(account string) string {
	return "system:serviceaccount:" + config.FluxNamespace + ":" + account
}

// fluxLeaves are the client certificates of the Flux controllers.
func fluxLeaves() []leaf {
	var all []leaf
	for _, c := range flux.Controllers() {
		all = append(all, leaf{
			name: c.Name, ca: "ca", user: fluxUser(c.Name),
			groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + config.FluxNamespace},
			usage:  clientUsage,
		})
	}
	return all
}

// gitOps reports whether the plane will run the Flux controllers: as asked now, or else as before.
func (o Options) gitOps(c Config) bool {
	if o.GitOps != nil {
		return *o.GitOps
	}
	return c.GitOps
}

// findFlux returns the programs if the plane needs them.
func (o Options) findFlux() (flux.Programs, error) {
	c, err := o.Home.readConfig()
	if err != nil || !o.gitOps(c) {
		return nil, err
	}
	return flux.Find()
}

// launchFluxIfOn starts the Flux controllers unless they are off.
func (p *Plane) launchFluxIfOn(ctx context.Context, progress Progress) ([]*child, error) {
	if !p.gitOps.Load() {
		return nil, nil
	}
	return p.launchFlux(ctx, progress)
}

// launchFlux installs the API of Flux and starts its controllers. Beside a Flux of somebody else,
// the plane works without them.
func (p *Plane) launchFlux(ctx context.Context, progress Progress) ([]*child, error) {
	stage := progress.stage(gitOpsStage)
	err := install.ApplyFlux(ctx, p.home.clientConfig(p.config), install.Options{})
	var foreign *install.ForeignError
	if errors.As(err, &foreign) {
		p.log.Warn("Running without the Flux controllers", "reason", err)
		stage.skipped(err.Error())
		return nil, nil
	}
	if err == nil {
		err = p.home.makeDirs(p.home.fluxDir(), p.home.fluxDir("artifacts"), p.home.fluxDir("home"))
	}
	if err == nil {
		err = p.home.renewFluxTemp()
	}
	if err != nil {
		return nil, stage.failed(err)
	}
	stage.ok()
	return []*child{p.launch(p.sourceController()), p.launch(p.kustomizeController())}, nil
}

func (h Home) fluxDir(elem ...string) string { return h.path(append([]string{"flux"}, elem...)...) }

// fluxTemp is a private directory for temporary files: kustomize-controller unpacks repositories
// there, decrypted Secrets included.
func (h Home) fluxTemp(c flux.Controller) string { return h.path("run", "tmp-"+c.Name) }

// renewFluxTemp removes what killed controllers left behind.
func (h Home) renewFluxTemp() error {
	for _, c := range flux.Controllers() {
		if err := os.RemoveAll(h.fluxTemp(c)); err != nil {
			return err
		}
		if err := h.makeDirs(h.fluxTemp(c)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) sourceController() Component {
	address := loopback(p.config.Ports.SourceArtifacts)
	// Its health endpoint answers before it serves artifacts.
	return p.fluxController(flux.Source(), address+"/",
		"--health-addr=0",
		"--storage-path="+p.home.fluxDir("artifacts"),
		"--storage-addr="+address,
		"--storage-adv-addr="+address,
	)
}

func (p *Plane) kustomizeController() Component {
	health := loopback(p.config.Ports.KustomizeHealth)
	return p.fluxController(flux.Kustomize(), health+"/readyz",
		"--health-addr="+health,
		// A Kustomization never has privileges that nobody gave to its namespace.
		"--default-service-account="+config.FluxDefault,
		// Remote bases would be fetched without the checks and credentials of a source.
		"--no-remote-bases",
		// Each cluster is applied only when its own files change.
		"--feature-gates="+config.FluxExternalArtifacts,
	)
}

// fluxController returns a component that serves once the address, with a path, answers.
func (p *Plane) fluxController(c flux.Controller, ready string, args ...string) Component {
	// Metrics would be served together with profiles, to every user of the host.
	args = append(args, "--metrics-addr=0")
	return Component{
		Name:    c.Name,
		Version: c.Version,
		Command: func() *exec.Cmd {
			cmd := p.flux.Command(context.Background(), c, args...)
			cmd.Env = p.home.fluxEnvironment(c, os.Environ())
			cmd.Dir = p.home.fluxDir("home")
			return cmd
		},
		Probe: func(ctx context.Context) error { return p.probes.get(ctx, "http://"+ready) },
	}
}

// fluxInherits lists the variables of the supervisor that the Flux controllers see, in upper or
// lower case. Whoever may create a source acts through them, so they get neither the files in the
// user's home directory nor credentials from the environment.
var fluxInherits = []string{"PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "TZ"}

func (h Home) fluxEnvironment(c flux.Controller, environment []string) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.Contains(fluxInherits, strings.ToUpper(name))
	})
	return slices.Concat([]string{"GOGC=" + steadyGOGC}, kept, []string{
		"KUBECONFIG=" + h.componentKubeconfig(c.Name),
		"RUNTIME_NAMESPACE=" + config.FluxNamespace,
		"HOME=" + h.fluxDir("home"),
		"TMPDIR=" + h.fluxTemp(c),
		"TUF_ROOT=" + h.fluxDir("home", "sigstore"),
	})
}
