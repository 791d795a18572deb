package gitops

import (
	"context"
	"fmt"
	stdio "io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

// enabling holds the flags of enable.
type enabling struct {
	target

	file, url, branch, path, name, system string
	namespaces                            []string
	replace                               bool
	output                                ui.Output
}

func newEnable(io *ui.IO) *cobra.Command {
	e := &enabling{}
	cmd := &cobra.Command{
		Use:   "enable (-f FILE | --url URL)",
		Short: "Connect a Git repository to a management plane",
		Long: `Connect a Git repository to a management plane. This requires an administrator.

The repository is that of the FluxConfig in a spec, or that of --url. The command verifies
the credentials, stores them where only Drover and Flux read them, and binds them to this
repository and to namespaces: clusters of other namespaces can't use it. A repository on
GitHub is created if it does not exist, as a private one. Repeat the command to update the
credentials or to open the repository to more namespaces.

On a management cluster, the command also installs Flux, unless it runs there already, and
restarts Drover with GitOps. An embedded plane starts Flux by itself, unless that was turned
off with "drover up --gitops=false".

Credentials come from the environment:
  GitHub   EKSA_GITHUB_TOKEN
  SSH      EKSA_GIT_PRIVATE_KEY, EKSA_GIT_KNOWN_HOSTS and EKSA_GIT_SSH_KEY_PASSPHRASE
  HTTPS    DROVER_GIT_USERNAME, DROVER_GIT_PASSWORD and DROVER_GIT_CA_FILE

Commits are signed if DROVER_GIT_SIGNING_KEY names the file of a private key, one for SSH or
an armored one for OpenPGP. DROVER_GIT_SIGNING_PASSPHRASE decrypts it.`,
		Example: `  export EKSA_GIT_PRIVATE_KEY=~/.ssh/fleet EKSA_GIT_KNOWN_HOSTS=~/.ssh/known_hosts
  drover gitops enable --url ssh://git@git.example.com/fleet.git --path clusters/mgmt -n team-a
  drover gitops enable -f one.yaml --namespaces team-a,team-b`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context(), io) },
	}
	e.add(cmd, "`namespace` of the FluxConfig with --url (default: default)")
	f := cmd.Flags()
	f.StringVarP(&e.file, "filename", "f", "", "`file` with a FluxConfig, such as the spec of a cluster, or - for standard input")
	f.StringVar(&e.url, "url", "", "`URL` of the repository, if there is no FluxConfig yet")
	f.StringVar(&e.branch, "branch", "", "`branch` of the repository with --url (default: main)")
	f.StringVar(&e.path, "path", "", "`directory` of the management cluster with --url, such as clusters/mgmt")
	f.StringVar(&e.name, "name", "fleet", "`name` of the FluxConfig with --url")
	f.StringSliceVar(&e.namespaces, "namespaces", nil, "more `namespaces` whose clusters may use the repository, separated by commas; * stands for all")
	f.BoolVar(&e.replace, "replace", false, "connect this repository instead of another one")
	systemFlag(cmd, &e.system)
	e.output.AddFlag(cmd)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	return cmd
}

func (e *enabling) run(ctx context.Context, io *ui.IO) error {
	ctx, cancel := context.WithTimeout(ctx, enableTimeout)
	defer cancel()
	config, err := e.config(io)
	if err != nil {
		return err
	}
	p, err := e.connect()
	if err != nil {
		return err
	}
	done, err := p.Enable(ctx, gitops.Enabling{FluxConfig: config, Namespaces: e.namespaces, Replace: e.replace, Getenv: os.Getenv})
	if err != nil {
		return err
	}
	flux, err := e.installation(io)
	if err != nil {
		return err
	}
	installed, err := flux.Install(ctx)
	if err != nil {
		return err
	}
	if done.RunsFlux = done.RunsFlux || installed; !done.RunsFlux {
		fmt.Fprintln(io.Err, "Waiting for the embedded plane to start Flux")
		if done.RunsFlux, err = p.AwaitFlux(ctx, gitops.FluxTimeout, func() {}); err != nil {
			return err
		}
	}
	return e.output.Print(io.Out, done, func(w stdio.Writer) error { return printEnabled(w, done) })
}

func printEnabled(w stdio.Writer, done *gitops.Enabled) error {
	fmt.Fprintf(w, "Repository %s is connected for namespaces %s.\n", done.URL, strings.Join(done.Namespaces, ", "))
	if done.Commit == "" {
		fmt.Fprintf(w, "Branch %s does not exist; the first change of a cluster creates it.\n", done.Branch)
	}
	if done.Signed {
		fmt.Fprintln(w, "Commits are signed.")
	}
	if !done.RunsFlux {
		fmt.Fprintln(w, "Flux does not run on this management plane. Start it with `drover up --gitops`.")
	}
	return nil
}

// config returns the FluxConfig of the file or of the flags.
func (e *enabling) config(io *ui.IO) (*anywherev1.FluxConfig, error) {
	switch {
	case (e.file == "") == (e.url == ""):
		return nil, ui.Usagef("specify the repository: either a FluxConfig with -f, or --url")
	case e.file != "":
		return e.read(io)
	}
	c := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name}}
	c.Spec = anywherev1.FluxConfigSpec{
		SystemNamespace: e.system, Branch: e.branch, ClusterConfigPath: e.path, Git: &anywherev1.GitProviderConfig{RepositoryURL: e.url},
	}
	return complete(c), nil
}

// read returns the only FluxConfig of a file. Other objects are ignored.
func (e *enabling) read(io *ui.IO) (*anywherev1.FluxConfig, error) {
	documents, name, err := io.Manifests(e.file)
	if err != nil {
		return nil, err
	}
	var found *anywherev1.FluxConfig
	for _, document := range documents {
		meta := metav1.TypeMeta{}
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if meta.Kind != anywherev1.FluxConfigKind {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("reading %s: it has more than one FluxConfig", name)
		}
		found = &anywherev1.FluxConfig{}
		if err := yaml.UnmarshalStrict(document, found); err != nil {
			return nil, fmt.Errorf("reading the FluxConfig in %s: %w", name, err)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("reading %s: it has no FluxConfig", name)
	}
	return complete(found), nil
}

// complete fills in the defaults of a FluxConfig.
func complete(c *anywherev1.FluxConfig) *anywherev1.FluxConfig {
	if c.Namespace == "" {
		c.Namespace = spec.DefaultNamespace
	}
	if c.Spec.SystemNamespace == "" {
		c.Spec.SystemNamespace = spec.DefaultFluxSystem
	}
	if c.Spec.Branch == "" {
		c.Spec.Branch = spec.DefaultFluxBranch
	}
	return c
}
