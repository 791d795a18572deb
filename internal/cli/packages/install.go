package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func newInstall(io *ui.IO) *cobra.Command {
	var o options
	var w wait
	var name string
	var sets []string
	cmd := &cobra.Command{
		Use:     "package PACKAGE",
		Aliases: []string{"packages"},
		Short:   "Install a package on a cluster",
		Long: `Install a package from the cluster's active bundle. --set sets values of its config:
dots in keys create nested maps, and values are parsed as YAML.

The command creates a Package on the management plane. To keep packages in Git, write
the manifest to a file with "drover generate package".`,
		Example: `  drover install package hello-eks-anywhere --package-name my-hello --cluster dev
  drover install package hello-eks-anywhere -n my-hello --cluster dev --set title="Hello, world" --set service.port=8080 --wait 5m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name == "" {
				return ui.Usagef("--package-name is required")
			}
			config, err := configOf(sets)
			if err != nil {
				return ui.Usage(err)
			}
			plane, _, err := o.connectTo(cmd.Context())
			if err != nil {
				return err
			}
			if err := o.install(cmd.Context(), plane, inspect.PackageTemplate(o.cluster, name, args[0]), config); err != nil {
				return err
			}
			fmt.Fprintf(io.Err, "Created package %s. To follow its progress: drover get packages --cluster %s\n", name, o.cluster)
			return w.await(cmd.Context(), io, goal{plane: plane, cluster: o.cluster, names: []string{name}, reached: isInstalled})
		},
	}
	o.addCluster(cmd)
	w.add(cmd, "the package is installed")
	cmd.Flags().StringVarP(&name, "package-name", "n", "", "`name` of the package on the cluster")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "`key=value` to set in the config; may be repeated")
	return cmd
}

// install creates the Package if the active bundle contains it.
func (o *options) install(ctx context.Context, plane *inspect.Plane, p *packagesv1.Package, config string) error {
	active, err := plane.ActiveBundle(ctx, o.cluster)
	if err != nil {
		return err
	}
	entry, err := entryOf(active, p.Spec.PackageName)
	if err != nil {
		return err
	}
	p.Spec.PackageName, p.Spec.Config = entry.Name, config
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		return err
	}
	delete(content, "status")
	return plane.Create(ctx, &unstructured.Unstructured{Object: content})
}

// configOf turns key=value pairs into YAML.
func configOf(sets []string) (string, error) {
	config := map[string]any{}
	for _, set := range sets {
		key, text, ok := strings.Cut(set, "=")
		if !ok || key == "" {
			return "", fmt.Errorf("please specify %s as key=value", set)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil || value == nil {
			value = text
		}
		if err := unstructured.SetNestedField(config, value, strings.Split(key, ".")...); err != nil {
			return "", fmt.Errorf("--set %s: another --set assigns %q a value that is not a map", key, key[:strings.LastIndex(key, ".")])
		}
	}
	if len(config) == 0 {
		return "", nil
	}
	data, err := yaml.Marshal(config)
	return string(data), err
}

func newCreate(io *ui.IO) *cobra.Command {
	return fromFile(io, fileCommand{
		short: "Create packages from a file",
		long: `Create the packages in a file, including PackageBundles and PackageBundleControllers.
If an object exists or is rejected, nothing is created.`,
		example: "  drover create packages -f hello.yaml\n  drover generate package hello-eks-anywhere --cluster dev | drover create package -f -",
		done:    "created",
		do:      (*inspect.Plane).Create,
	})
}

func newApply(io *ui.IO) *cobra.Command {
	return fromFile(io, fileCommand{
		short: "Create or update packages from a file",
		long: `Create or update the packages in a file, including PackageBundles and
PackageBundleControllers. If an object is rejected, nothing is changed.`,
		example: "  drover apply package -f hello.yaml --wait 5m",
		done:    "applied",
		do:      (*inspect.Plane).Apply,
	})
}

// fileCommand holds the differences between the commands that take -f.
type fileCommand struct {
	short, long, example, done string
	do                         func(*inspect.Plane, context.Context, ...*unstructured.Unstructured) error
}

func fromFile(io *ui.IO, f fileCommand) *cobra.Command {
	var o options
	var w wait
	var file string
	cmd := &cobra.Command{
		Use: "package -f FILE", Aliases: []string{"packages"},
		Short: f.short, Long: f.long, Example: f.example,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return ui.Usagef("-f is required")
			}
			objects, err := read(io, file)
			if err != nil {
				return err
			}
			plane, err := o.connect()
			if err != nil {
				return err
			}
			if err := f.do(plane, cmd.Context(), objects...); err != nil {
				return err
			}
			for _, u := range objects {
				fmt.Fprintf(io.Err, "%s %s %s\n", u.GetKind(), u.GetName(), f.done)
			}
			return w.awaitAll(cmd.Context(), io, plane, objects)
		},
	}
	o.add(cmd)
	w.add(cmd, "the packages are installed")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with manifests, or - for standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cmd
}

// awaitAll waits for the Packages among the objects, one cluster after the other.
func (w *wait) awaitAll(ctx context.Context, io *ui.IO, plane *inspect.Plane, objects []*unstructured.Unstructured) error {
	if w.limit == 0 {
		return nil
	}
	targetOf, err := plane.PackageTargets(ctx)
	if err != nil {
		return err
	}
	byCluster := map[string][]string{}
	for _, u := range objects {
		if u.GetKind() == "Package" {
			cluster := targetOf(client.ObjectKeyFromObject(u))
			byCluster[cluster] = append(byCluster[cluster], u.GetName())
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		if cluster == "" {
			return fmt.Errorf("no PackageBundleController found for %s\nTry: drover get packagebundlecontrollers", strings.Join(byCluster[cluster], ", "))
		}
		if err := w.await(ctx, io, goal{plane: plane, cluster: cluster, names: byCluster[cluster], reached: isInstalled}); err != nil {
			return err
		}
	}
	return nil
}

// read returns the objects in a file. All must belong to the API group of packages.
func read(io *ui.IO, file string) ([]*unstructured.Unstructured, error) {
	documents, where, err := io.Manifests(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, document := range documents {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, fmt.Errorf("parsing %s: invalid YAML", where)
		}
		switch {
		case len(u.Object) == 0:
			continue
		case u.GetAPIVersion() != packagesv1.GroupVersion.String():
			return nil, fmt.Errorf("%s contains a %s of %s, which is not a kind of packages; apply it with kubectl", where, u.GetKind(), u.GetAPIVersion())
		case u.GetName() == "":
			return nil, fmt.Errorf("a %s in %s has no name", u.GetKind(), where)
		case u.GetNamespace() == "" && u.GetKind() == "Package":
			return nil, fmt.Errorf("package %q in %s has no namespace; use %s<cluster>", u.GetName(), where, packagesv1.NamespacePrefix)
		case u.GetNamespace() == "":
			u.SetNamespace(packagesv1.Namespace)
		}
		delete(u.Object, "status")
		out = append(out, u)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no packages found in %s", where)
	}
	return out, nil
}
