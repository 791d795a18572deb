package bundle

import (
	"cmp"
	"errors"
	"fmt"
	stdio "io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
)

type buildOptions struct {
	output     ui.Output
	kubernetes string
	build      int
	minimum    string
	file       string
	charts     string
}

func newBuild(io *ui.IO) *cobra.Command {
	o := &buildOptions{}
	cmd := &cobra.Command{
		Use:   "build PATH",
		Short: "Build a bundle from charts",
		Long: `Build a bundle from charts. PATH is a definition file, or a directory in which each
chart becomes a package.

A chart is a directory or an archive. Directories are packaged reproducibly, and the
bundle contains the digest that each chart has in a registry. Keep the archives with
--charts, because "drover bundle push" needs exactly these. The values.schema.json of a
chart becomes the schema that validates the config of the package.

A definition file looks like this. File names are relative to it:

  kubeVersion: "1.36"        # or --kube-version
  build: 1                   # or --build: increase it with each bundle
  packages:
  - versions:                # latest first
    - chart: charts/hello    # a directory, or hello-1.0.0.tgz
      images:                # copied by "drover bundle copy"
      - repository: hello/server
        digest: sha256:0123…
      dependencies: [base]   # packages of this bundle to install first
  - name: base               # default: the name of the chart
    workloadonly: true       # reject it on the management cluster
    repository: team/base    # default: charts/NAME
    versions:
    - chart: charts/base
      schema: base.json      # default: the schema of the chart
      kubeVersions: ["1.36"] # only in bundles for these versions

The unsigned bundle is written to NAME.yaml. Sign it with "drover bundle sign".`,
		Example: `  drover bundle build bundle.yaml --charts out
  drover bundle build charts/ --kube-version 1.36 --build 7 --charts out
  for v in 1.35 1.36; do drover bundle build bundle.yaml --kube-version $v; done`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(io, args[0]) },
	}
	cmd.Flags().StringVar(&o.kubernetes, "kube-version", "", "Kubernetes minor `version` of the bundle, such as 1.36")
	cmd.Flags().IntVar(&o.build, "build", 0, "`number` of the bundle among those for the same Kubernetes version")
	cmd.Flags().StringVar(&o.minimum, "min-version", "", "oldest `version` of Drover that can use the bundle")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write the bundle to, or - for standard output (default NAME.yaml)")
	cmd.Flags().StringVar(&o.charts, "charts", "", "`directory` to write the chart archives to")
	_ = cmd.MarkFlagDirname("charts")
	o.output.AddFlag(cmd)
	return cmd
}

// builtReport is the output of build.
type builtReport struct {
	Bundle   string         `json:"bundle"`
	File     string         `json:"file"`
	Packages []builtPackage `json:"packages"`
}

type builtPackage struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
	Archive    string `json:"archive,omitempty"`
	Images     int    `json:"images"`
	Schema     bool   `json:"schema"`
}

func (o *buildOptions) run(io *ui.IO, from string) error {
	definition, err := read(from)
	if err != nil {
		return err
	}
	definition.KubeVersion = strings.TrimPrefix(cmp.Or(o.kubernetes, definition.KubeVersion), "v")
	definition.Build = cmp.Or(o.build, definition.Build)
	definition.MinControllerVersion = cmp.Or(o.minimum, definition.MinControllerVersion)
	built, err := pack.Build(definition)
	if err != nil {
		return err
	}
	archives, err := o.writeCharts(built)
	if err != nil {
		return err
	}
	text, err := bundle.Format(built.Bundle)
	if err != nil {
		return err
	}
	file := cmp.Or(o.file, built.Bundle.Name+".yaml")
	if file == "-" {
		_, err := io.Out.Write(text)
		return err
	}
	if err := atomicfile.Write(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	report := newBuiltReport(built, file, archives)
	return o.output.Print(io.Out, report, report.table)
}

func read(from string) (*pack.Definition, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of the bundle: %w", err)
	}
	if info.IsDir() {
		return pack.FromDirectory(from)
	}
	return pack.ReadDefinition(from)
}

func (o *buildOptions) writeCharts(built *pack.Built) ([]string, error) {
	files := make([]string, len(built.Charts))
	if o.charts == "" {
		return files, nil
	}
	if err := os.MkdirAll(o.charts, 0o755); err != nil { //nolint:gosec // charts are public
		return nil, fmt.Errorf("writing charts: %w", err)
	}
	for i, chart := range built.Charts {
		files[i] = filepath.Join(o.charts, chart.Name+"-"+chart.Version+".tgz")
		if err := atomicfile.Write(files[i], built.Archives[i], 0o644); err != nil {
			return nil, fmt.Errorf("writing chart %q: %w", chart.Name, err)
		}
	}
	return files, nil
}

func newBuiltReport(built *pack.Built, file string, archives []string) builtReport {
	report := builtReport{Bundle: built.Bundle.Name, File: file}
	next := 0
	for _, p := range built.Bundle.Spec.Packages {
		for _, v := range p.Source.Versions {
			report.Packages = append(report.Packages, builtPackage{
				Name: p.Name, Version: v.Name, Repository: p.Source.Repository, Digest: v.Digest, Archive: archives[next], Images: len(v.Images), Schema: v.Schema != "",
			})
			next++
		}
	}
	return report
}

func (r builtReport) table(w stdio.Writer) error {
	rows := make([][]string, 0, len(r.Packages))
	for _, p := range r.Packages {
		schema := "no"
		if p.Schema {
			schema = "yes"
		}
		rows = append(rows, []string{p.Name, p.Version, p.Repository, schema, strconv.Itoa(p.Images), p.Digest})
	}
	err := ui.Table(w, []string{"PACKAGE", "VERSION", "REPOSITORY", "SCHEMA", "IMAGES", "DIGEST"}, rows)
	_, last := fmt.Fprintf(w, "\nWrote %s. Next: drover bundle sign %s --key FILE\n", r.File, r.File)
	return errors.Join(err, last)
}
