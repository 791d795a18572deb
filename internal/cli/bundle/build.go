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
		Short: "Make a bundle out of charts",
		Long: `Make a bundle out of charts. PATH is a file that lists them, or a directory of charts,
each of which becomes a package with the name of its chart.

Charts are directories or archives. Directories are packed, always into the same
bytes, and the bundle has the digests that the charts will have in a registry. So the
same charts give the same bundle, and "drover bundle push" needs the very same ones:
keep them with --charts. A chart's values.schema.json becomes the schema that config
of the package is held against.

A file that lists charts looks like this. Names of files are relative to it:

  kubeVersion: "1.36"        # or --kube-version
  build: 1                   # or --build: a higher one for each new bundle
  packages:
  - versions:                # the latest first
    - chart: charts/hello    # a directory, or hello-1.0.0.tgz
      images:                # what it needs, for "drover bundle copy"
      - repository: hello/server
        digest: sha256:0123…
      dependencies: [base]   # packages of this bundle that must be there first
  - name: base               # the chart's, if it is not given
    workloadonly: true       # keep it off the management cluster
    repository: team/base    # charts/NAME, if it is not given
    versions:
    - chart: charts/base
      schema: base.json      # the chart's, if it is not given
      kubeVersions: ["1.36"] # leave it out of bundles for others

The bundle is written to NAME.yaml. It is not signed; see "drover bundle sign".`,
		Example: `  drover bundle build bundle.yaml --charts out
  drover bundle build charts/ --kube-version 1.36 --build 7 --charts out
  for v in 1.35 1.36; do drover bundle build bundle.yaml --kube-version $v; done`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(io, args[0]) },
	}
	cmd.Flags().StringVar(&o.kubernetes, "kube-version", "", "minor `version` of Kubernetes that the bundle is for, such as 1.36")
	cmd.Flags().IntVar(&o.build, "build", 0, "`number` that tells bundles for the same version apart")
	cmd.Flags().StringVar(&o.minimum, "min-version", "", "oldest `version` of Drover that can use the bundle")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write the bundle to, - for the standard output (default NAME.yaml)")
	cmd.Flags().StringVar(&o.charts, "charts", "", "`directory` to write the archives of the charts to")
	_ = cmd.MarkFlagDirname("charts")
	o.output.AddFlag(cmd)
	return cmd
}

// builtReport is what -o json prints.
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
		return nil, fmt.Errorf("reading what the bundle is made of: %w", err)
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
	if err := os.MkdirAll(o.charts, 0o755); err != nil { //nolint:gosec // Charts are for everybody.
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
