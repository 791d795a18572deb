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
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/addons/plan"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// Exit codes, like those of diff(1).
const (
	exitChanges = 1
	exitUnknown = 2
)

// addonDiff is the outlook of one add-on.
type addonDiff struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Outlook   []inspect.Outlook `json:"outlook"`
}

func newDiff(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	var from packages
	var file string
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Preview the changes of a HelmChartProxy on each cluster",
		Long: `Show what would change on each cluster if the HelmChartProxies in a file were
applied. Clusters with the same changes are grouped. Values of Secrets are masked.

The command changes nothing. It renders templates and charts like the manager, from
the current state of the plane and the clusters, and runs a server-side dry run on
each cluster. It must be able to read Secrets on the plane: kubeconfigs, credentials
and values.

The exit code is 0 if nothing would change, 1 if something would, and 2 if the
result is unknown for some clusters.`,
		Example: `  drover addon diff -f cni.yaml
  kustomize build addons | drover addon diff -f -
  drover addon diff -f cni.yaml -o json | jq '.[].outlook[].clusters'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return ui.Usagef("specify a file with -f, or - for standard input")
			}
			charts, err := o.readFile(io, file)
			if err != nil {
				return &ui.CodeError{Code: exitUnknown, Err: err}
			}
			all, err := o.diff(cmd.Context(), from, charts)
			if err != nil {
				return &ui.CodeError{Code: exitUnknown, Err: err}
			}
			if err := output.Print(io.Out, all, func(w stdio.Writer) error { return printDiff(w, all) }); err != nil {
				return &ui.CodeError{Code: exitUnknown, Err: err}
			}
			return exitCode(all)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with HelmChartProxies, or - for standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	from.add(cmd)
	output.AddFlag(cmd)
	return cmd
}

func (o *options) diff(ctx context.Context, from packages, charts []*addonsv1.HelmChartProxy) ([]addonDiff, error) {
	plane, err := o.connect()
	if err != nil {
		return nil, err
	}
	clusters, err := from.clusters(plane)
	if err != nil {
		return nil, err
	}
	defer clusters.Close()
	out := []addonDiff{}
	for _, hcp := range charts {
		outlook, err := clusters.Diff(ctx, hcp)
		if err != nil {
			return nil, fmt.Errorf("previewing add-on %q: %w", hcp.Name, err)
		}
		out = append(out, addonDiff{Namespace: hcp.Namespace, Name: hcp.Name, Outlook: outlook})
	}
	return out, nil
}

func exitCode(all []addonDiff) error {
	code := ui.ExitOK
	for _, d := range all {
		for _, o := range d.Outlook {
			switch {
			case o.Error != "":
				return ui.Silent(exitUnknown)
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

// readFile returns the HelmChartProxies in a file and ignores other kinds.
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
		return nil, fmt.Errorf("no HelmChartProxy in %s", name)
	}
	return out, nil
}

// decoder returns a decoder that is as strict as the API server: field names are case-sensitive.
func decoder() *json.Serializer {
	scheme := runtime.NewScheme()
	_ = addonsv1.AddToScheme(scheme) // never fails
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// parseDocument returns nil for other kinds than HelmChartProxy. Errors never quote values.
func (o *options) parseDocument(document []byte) (*addonsv1.HelmChartProxy, error) {
	kind := metav1.TypeMeta{}
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, errors.New("invalid YAML")
	}
	if kind.Kind != "HelmChartProxy" || kind.APIVersion != addonsv1.GroupVersion.String() {
		return nil, nil // another kind
	}
	hcp := &addonsv1.HelmChartProxy{}
	if _, _, err := decoder().Decode(document, nil, hcp); err != nil {
		return nil, fmt.Errorf("decoding HelmChartProxy: %w", err)
	}
	if hcp.Name == "" {
		return nil, errors.New("HelmChartProxy has no name")
	}
	if o.namespace != "" && hcp.Namespace != "" && hcp.Namespace != o.namespace {
		return nil, fmt.Errorf("HelmChartProxy %q is in namespace %q, but --namespace is %q", hcp.Name, hcp.Namespace, o.namespace)
	}
	if hcp.Namespace == "" {
		hcp.Namespace = corev1.NamespaceDefault
		if o.namespace != "" {
			hcp.Namespace = o.namespace
		}
	}
	return hcp, nil
}

func printDiff(w stdio.Writer, all []addonDiff) error {
	out := &strings.Builder{}
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s/%s\n", d.Namespace, d.Name)
		if len(d.Outlook) == 0 {
			fmt.Fprintln(out, "  No cluster is selected, and none has a release.")
		}
		for _, o := range d.Outlook {
			printOutlook(out, o)
		}
	}
	_, err := stdio.WriteString(w, out.String())
	return err
}

// marks are the prefixes of changed objects.
var marks = map[string]string{tool.Create: "+", tool.Update: "~", tool.Delete: "-"}

func printOutlook(out *strings.Builder, o inspect.Outlook) {
	fmt.Fprintf(out, "  %s: %s\n", clusterText(o.Clusters), actionText(o))
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

func actionText(o inspect.Outlook) string {
	version := ""
	if o.Version != "" {
		version = " version " + o.Version
	}
	switch {
	case o.Error != "":
		return "unknown: " + o.Error
	case o.Action == plan.Install:
		return "install" + version
	case o.Action == plan.Reinstall:
		return "reinstall" + version
	case o.Action == plan.Uninstall:
		return "uninstall"
	case o.Action == plan.Upgrade && len(o.Objects) == 0:
		return "no object changes, only settings: " + strings.Join(o.Fields, ", ")
	case o.Action == plan.Upgrade:
		return "upgrade" + version + " (" + strings.Join(o.Fields, ", ") + ")"
	default:
		return "no changes"
	}
}

// clustersShown is how many clusters of a group are named.
const clustersShown = 5

func clusterText(clusters []string) string {
	if len(clusters) == 1 {
		return "On cluster " + clusters[0]
	}
	return fmt.Sprintf("On %d clusters (%s)", len(clusters), text.FirstN(clusters, clustersShown))
}
