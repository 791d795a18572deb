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
		Long: `Install a package of the cluster's active bundle, with the config that --set gives.
Dots in keys make maps, and values are read as YAML: true is a boolean, 3 a number.

What is made is a Package in the management plane; write one to a file with
"drover generate package" to keep it in Git instead.`,
		Example: `  drover install package hello-eks-anywhere --package-name my-hello --cluster billy
  drover install package hello-eks-anywhere -n my-hello --cluster billy --set title="Hello, Billy" --set service.port=8080 --wait 5m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name == "" {
				return ui.Usagef("--package-name is needed: what should the package be called on the cluster?")
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
			fmt.Fprintf(io.Err, "Package %s is made. See how it is doing:\n\n  drover get packages --cluster %s\n\n", name, o.cluster)
			return w.await(cmd.Context(), io, goal{plane: plane, cluster: o.cluster, names: []string{name}, reached: isInstalled})
		},
	}
	o.addCluster(cmd)
	w.add(cmd, "it is installed")
	cmd.Flags().StringVarP(&name, "package-name", "n", "", "`name` of the package on the cluster")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "`key=value` of the config; may be given several times")
	return cmd
}

// install checks that the bundle has the package before it makes anything.
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

// configOf is YAML made of key=value pairs.
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
			return "", fmt.Errorf("--set %s: another --set gives %q a value that is no map", key, key[:strings.LastIndex(key, ".")])
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
		long: `Create the packages in a file. If one of them exists or is refused, none is made.
A PackageBundle or a PackageBundleController in the file is made too.`,
		example: "  drover create packages -f hello.yaml\n  drover generate package hello-eks-anywhere --cluster billy | drover create package -f -",
		done:    "created",
		do:      (*inspect.Plane).Create,
	})
}

func newApply(io *ui.IO) *cobra.Command {
	return fromFile(io, fileCommand{
		short: "Create or change packages from a file",
		long: `Create or change the packages in a file. If one of them is refused, nothing is
changed. A PackageBundle or a PackageBundleController in the file is applied too.`,
		example: "  drover apply package -f hello.yaml --wait 5m",
		done:    "applied",
		do:      (*inspect.Plane).Apply,
	})
}

// fileCommand is what differs between commands that take -f.
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
				return ui.Usagef("-f is needed: which file are the packages in?")
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
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with the manifests, - for standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return cmd
}

// awaitAll waits for the packages among objects, cluster by cluster.
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
			return fmt.Errorf("it is not known which cluster %s is for: see `drover get packagebundlecontrollers`", strings.Join(byCluster[cluster], ", "))
		}
		if err := w.await(ctx, io, goal{plane: plane, cluster: cluster, names: byCluster[cluster], reached: isInstalled}); err != nil {
			return err
		}
	}
	return nil
}

// read returns the objects of a file, which are all of packages.
func read(io *ui.IO, file string) ([]*unstructured.Unstructured, error) {
	documents, where, err := io.Manifests(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, document := range documents {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, fmt.Errorf("%s is no YAML", where)
		}
		switch {
		case len(u.Object) == 0:
			continue
		case u.GetAPIVersion() != packagesv1.GroupVersion.String():
			return nil, fmt.Errorf("%s has a %s of %s, which is no package: apply that with kubectl", where, u.GetKind(), u.GetAPIVersion())
		case u.GetName() == "":
			return nil, fmt.Errorf("a %s in %s has no name", u.GetKind(), where)
		case u.GetNamespace() == "" && u.GetKind() == "Package":
			return nil, fmt.Errorf("package %q in %s has no namespace: use %s<cluster>", u.GetName(), where, packagesv1.NamespacePrefix)
		case u.GetNamespace() == "":
			u.SetNamespace(packagesv1.Namespace)
		}
		delete(u.Object, "status")
		out = append(out, u)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no package in %s", where)
	}
	return out, nil
}
