package packages

import (
	"cmp"
	"context"
	"fmt"
	stdio "io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
)

// catalog selects a bundle: the active one of a cluster, or the newest for a Kubernetes version.
type catalog struct {
	options

	kubernetes string
	registry   string
}

func (c *catalog) add(cmd *cobra.Command) {
	c.addCluster(cmd)
	cmd.Flags().StringVar(&c.kubernetes, "kube-version", "", "read the newest bundle for this Kubernetes `version`, such as 1.36")
	cmd.Flags().StringVar(&c.registry, "registry", "", "`registry` to read the bundle from, as host[:port][/path] (default: the bundles on the management plane)")
}

var minorVersion = regexp.MustCompile(`^\d+\.\d+$`)

// check rejects combinations of flags that select no bundle.
func (c *catalog) check() error {
	switch {
	case c.kubernetes == "" && c.cluster == "":
		return ui.Usagef("please specify kube-version or cluster name")
	case c.kubernetes != "" && !minorVersion.MatchString(c.kubernetes):
		return ui.Usagef("please specify kube-version as <major>.<minor>")
	case c.registry != "" && c.kubernetes == "":
		return ui.Usagef("--registry requires --kube-version; the bundle of a cluster is on the management plane")
	}
	return nil
}

// bundle returns the selected bundle.
func (c *catalog) bundle(ctx context.Context) (*packagesv1.PackageBundle, error) {
	if c.registry != "" {
		return c.download(ctx)
	}
	known, err := c.connect()
	if err != nil {
		return nil, err
	}
	if c.kubernetes == "" {
		return known.ActiveBundle(ctx, c.cluster)
	}
	return newestOf(ctx, known, c.kubernetes)
}

// defaultRepository is the repository of bundles in a registry.
const defaultRepository = "eks-anywhere-packages-bundles"

// download reads the bundle from a registry with the user's credentials. The registry of the
// embedded plane needs none.
func (c *catalog) download(ctx context.Context) (*packagesv1.PackageBundle, error) {
	tag, err := bundle.LatestTag(c.kubernetes)
	if err != nil {
		return nil, err
	}
	host, _, _ := strings.Cut(c.registry, "/")
	wanted := source.Wanted{Registry: c.registry, Repository: defaultRepository, Tag: tag}
	var options source.Options
	if r, err := plane.ReadRegistry(plane.Home{Dir: plane.DefaultHome()}); err == nil {
		if options.Trust, err = artifact.TrustRegistry(r.URL, r.CAFile); err != nil {
			return nil, err
		}
	}
	if _, own := options.Trust[host]; !own {
		wanted.Access = map[string]artifact.Access{host: artifact.UserAccess()}
	}
	bundles, err := source.New(options)
	if err != nil {
		return nil, err
	}
	defer bundles.Close()
	found, err := bundles.Get(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return found.Bundle, nil
}

// newestOf returns the newest available bundle on the plane for a Kubernetes version.
func newestOf(ctx context.Context, known *inspect.Plane, kubernetes string) (*packagesv1.PackageBundle, error) {
	all, err := known.Bundles(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		name, err := bundle.ParseName(all[i].Name)
		if err == nil && name.Kubernetes() == kubernetes && all[i].Status.State == packagesv1.BundleAvailable {
			return &all[i].PackageBundle, nil
		}
	}
	return nil, fmt.Errorf("no available bundle for Kubernetes %s on the management plane\nTry: drover get packagebundles, or pass --registry", kubernetes)
}

func newList(io *ui.IO) *cobra.Command {
	var c catalog
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "packages",
		Aliases: []string{"package"},
		Short:   "List packages available to a cluster",
		Long: `List the packages in the active bundle of a cluster, or in the newest bundle for a
Kubernetes version.`,
		Example: `  drover list packages --cluster dev
  drover list packages --kube-version 1.36
  drover list packages --kube-version 1.36 --registry registry.example.com/team -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			found, err := c.bundle(cmd.Context())
			if err != nil {
				return err
			}
			return output.Print(io.Out, found.Spec.Packages, func(w stdio.Writer) error { return catalogTable(w, found) })
		},
	}
	c.add(cmd)
	output.AddFlag(cmd)
	return cmd
}

// catalogTable prints the columns that existing scripts parse.
func catalogTable(w stdio.Writer, b *packagesv1.PackageBundle) error {
	rows := [][]string{{"-------", "", "----------", ""}}
	for _, p := range b.Spec.Packages {
		var versions []string
		for _, v := range p.Source.Versions {
			versions = append(versions, v.Name)
		}
		rows = append(rows, []string{p.Name, "", strings.Join(versions, ", "), ""})
	}
	return ui.Table(w, []string{"Package", "", "Version(s)", ""}, rows)
}

func newGenerate(io *ui.IO) *cobra.Command {
	var c catalog
	cmd := &cobra.Command{
		Use:     "package NAME",
		Aliases: []string{"packages"},
		Short:   "Generate the manifest of a package",
		Long:    `Print the manifest of a Package for you to edit and apply. Nothing is installed.`,
		Example: `  drover generate package hello-eks-anywhere --cluster dev > hello.yaml
  drover apply package -f hello.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return ui.Usagef("The name of the package to install must be specified as an argument")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.cluster == "" {
				return ui.Usagef("--cluster is required")
			}
			if err := c.check(); err != nil {
				return err
			}
			found, err := c.bundle(cmd.Context())
			if err != nil {
				return err
			}
			entry, err := entryOf(found, args[0])
			if err != nil {
				return err
			}
			return printPackage(io.Out, inspect.PackageTemplate(c.cluster, "generated-"+strings.ToLower(entry.Name), entry.Name))
		},
	}
	c.add(cmd)
	return cmd
}

// entryOf finds a package of a bundle by name, ignoring case.
func entryOf(b *packagesv1.PackageBundle, name string) (*packagesv1.BundlePackage, error) {
	var names []string
	for i := range b.Spec.Packages {
		if strings.EqualFold(b.Spec.Packages[i].Name, name) {
			return &b.Spec.Packages[i], nil
		}
		names = append(names, b.Spec.Packages[i].Name)
	}
	return nil, fmt.Errorf("package %q not found in bundle %s, which contains: %s", name, b.Name, cmp.Or(strings.Join(names, ", "), "none"))
}

// printPackage prints a manifest without the fields that only the manager writes.
func printPackage(w stdio.Writer, p *packagesv1.Package) error {
	data, err := yaml.Marshal(struct {
		APIVersion string                 `json:"apiVersion"`
		Kind       string                 `json:"kind"`
		Metadata   map[string]string      `json:"metadata"`
		Spec       packagesv1.PackageSpec `json:"spec"`
	}{p.APIVersion, p.Kind, map[string]string{"name": p.Name, "namespace": p.Namespace}, p.Spec})
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
