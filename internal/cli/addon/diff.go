package addon

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/addons/plan"
	"github.com/drover-dev/drover/internal/operate/inspect/addons"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// Exit codes of diff, which are those that people know from diff.
const (
	exitChanges = 1
	exitTrouble = 2
)

// diffed is what would become of one add-on.
type diffed struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Outlook   []view.Outlook `json:"outlook"`
}

func newDiff(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	var from packages
	var file string
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what a HelmChartProxy would change, on which clusters",
		Long: `Show what would change on each cluster if the HelmChartProxies of a file were
applied: new ones, or new versions of ones that are there. Clusters with the same
changes are told together. Values of Secrets are not shown.

Nothing is changed. The command renders the templates and the chart as the manager
would, with what is on the plane and on the clusters now, and asks each cluster's API
server what it would make of the objects. It needs to read Secrets on the plane, for
kubeconfigs, credentials and values.

It ends with 0 if nothing would change, with 1 if something would, and with 2 if that
could not be found out for some clusters.`,
		Example: `  drover addon diff -f cni.yaml
  kustomize build addons | drover addon diff -f -
  drover addon diff -f cni.yaml -o json | jq '.[].outlook[].clusters'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return ui.Usagef("name a file with -f, or - for the standard input")
			}
			charts, err := o.readFile(io, file)
			if err != nil {
				return &ui.CodeError{Code: exitTrouble, Err: err}
			}
			all, err := o.diff(cmd.Context(), from, charts)
			if err != nil {
				return &ui.CodeError{Code: exitTrouble, Err: err}
			}
			if err := output.Print(io.Out, all, func(w stdio.Writer) error { return printDiff(w, all) }); err != nil {
				return &ui.CodeError{Code: exitTrouble, Err: err}
			}
			return verdict(all)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with HelmChartProxies, - for the standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	from.add(cmd)
	output.AddFlag(cmd)
	return cmd
}

func (o *options) diff(ctx context.Context, from packages, charts []*addonsv1.HelmChartProxy) ([]diffed, error) {
	plane, err := o.connect()
	if err != nil {
		return nil, err
	}
	clusters, err := from.clusters(plane)
	if err != nil {
		return nil, err
	}
	defer clusters.Close()
	out := []diffed{}
	for _, hcp := range charts {
		outlook, err := clusters.Diff(ctx, hcp)
		if err != nil {
			return nil, fmt.Errorf("looking at add-on %q: %w", hcp.Name, err)
		}
		out = append(out, diffed{Namespace: hcp.Namespace, Name: hcp.Name, Outlook: outlook})
	}
	return out, nil
}

func verdict(all []diffed) error {
	code := ui.ExitOK
	for _, d := range all {
		for _, o := range d.Outlook {
			switch {
			case o.Error != "":
				return ui.Silent(exitTrouble)
			case o.Changes():
				code = exitChanges
			}
		}
	}
	if code == ui.ExitOK {
		return nil
	}
	return ui.Silent(code)
}

// readFile returns the HelmChartProxies of a file and leaves the rest of it alone.
func (o *options) readFile(io *ui.IO, file string) ([]*addonsv1.HelmChartProxy, error) {
	documents, name, err := io.Manifests(file)
	if err != nil {
		return nil, err
	}
	var out []*addonsv1.HelmChartProxy
	for _, document := range documents {
		hcp, err := o.parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if hcp != nil {
			out = append(out, hcp)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no HelmChartProxy in %s", name)
	}
	return out, nil
}

// decoder is as strict as the API server: a name in the wrong case is another name.
func decoder() *json.Serializer {
	scheme := runtime.NewScheme()
	_ = addonsv1.AddToScheme(scheme) // it never fails
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// parseDocument returns nil for what is no HelmChartProxy. Errors do not quote values.
func (o *options) parseDocument(document []byte) (*addonsv1.HelmChartProxy, error) {
	kind := metav1.TypeMeta{}
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, errors.New("it is no YAML")
	}
	if kind.Kind != "HelmChartProxy" || kind.APIVersion != addonsv1.GroupVersion.String() {
		return nil, nil // it is something else
	}
	hcp := &addonsv1.HelmChartProxy{}
	if _, _, err := decoder().Decode(document, nil, hcp); err != nil {
		return nil, fmt.Errorf("the HelmChartProxy in it: %w", err)
	}
	if hcp.Name == "" {
		return nil, errors.New("the HelmChartProxy in it has no name")
	}
	if o.namespace != "" && hcp.Namespace != "" && hcp.Namespace != o.namespace {
		return nil, fmt.Errorf("HelmChartProxy %q is in namespace %q, not in %q as --namespace says", hcp.Name, hcp.Namespace, o.namespace)
	}
	if hcp.Namespace == "" {
		hcp.Namespace = corev1.NamespaceDefault
		if o.namespace != "" {
			hcp.Namespace = o.namespace
		}
	}
	return hcp, nil
}

func printDiff(w stdio.Writer, all []diffed) error {
	out := &strings.Builder{}
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s/%s\n", d.Namespace, d.Name)
		if len(d.Outlook) == 0 {
			fmt.Fprintln(out, "  Its selector matches no cluster that is not paused, and it is nowhere.")
		}
		for _, o := range d.Outlook {
			printOutlook(out, o)
		}
	}
	_, err := stdio.WriteString(w, out.String())
	return err
}

// Marks of what would happen to an object.
var marks = map[string]string{tool.Create: "+", tool.Update: "~", tool.Delete: "-"}

func printOutlook(out *strings.Builder, o view.Outlook) {
	fmt.Fprintf(out, "  %s: %s\n", on(o.Clusters), words(o))
	for _, object := range o.Objects {
		name := object.Name
		if object.Namespace != "" {
			name = object.Namespace + "/" + name
		}
		fmt.Fprintf(out, "    %s %s %s\n", marks[object.Action], object.Kind, name)
		for line := range strings.Lines(object.Diff) {
			fmt.Fprintf(out, "        %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

func words(o view.Outlook) string {
	version := ""
	if o.Version != "" {
		version = " version " + o.Version
	}
	switch {
	case o.Error != "":
		return "could not find out: " + o.Error
	case o.Action == plan.Install:
		return "would be installed," + version
	case o.Action == plan.Reinstall:
		return "would be removed and installed anew," + version
	case o.Action == plan.Uninstall:
		return "would be uninstalled"
	case o.Action == plan.Upgrade && len(o.Objects) == 0:
		return "no object would change, but settings would: " + strings.Join(o.Fields, ", ")
	case o.Action == plan.Upgrade:
		return "would be upgraded," + version + " (" + strings.Join(o.Fields, ", ") + ")"
	default:
		return "nothing would change"
	}
}

// clustersShown is how many clusters of a group are named.
const clustersShown = 5

func on(clusters []string) string {
	if len(clusters) == 1 {
		return "On cluster " + clusters[0]
	}
	names := clusters[:min(len(clusters), clustersShown)]
	text := strings.Join(names, ", ")
	if more := len(clusters) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("On %d clusters (%s)", len(clusters), text)
}
