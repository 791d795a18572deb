package pack

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Built is an unsigned bundle and its charts.
type Built struct {
	Bundle *packagesv1.PackageBundle
	Charts []*registry.Chart
	// Archives are the chart archives in the order of Charts.
	Archives [][]byte
}

// Build builds the bundle of a definition reproducibly.
func Build(d *Definition) (*Built, error) {
	name, err := d.Name()
	if err != nil {
		return nil, err
	}
	built := &Built{Bundle: &packagesv1.PackageBundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: packagesv1.GroupVersion.String(), Kind: "PackageBundle"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: packagesv1.Namespace},
		Spec:       packagesv1.PackageBundleSpec{MinVersion: d.MinControllerVersion},
	}}
	for _, p := range d.forKubernetes() {
		if err := built.add(d, p); err != nil {
			return nil, err
		}
	}
	if err := bundle.Check(built.Bundle); err != nil {
		return nil, fmt.Errorf("bundle %s is invalid:\n%w", name, err)
	}
	return built, nil
}

// Name returns the name of the bundle.
func (d *Definition) Name() (string, error) {
	latest, err := bundle.LatestTag(d.KubeVersion)
	if err != nil {
		return "", err
	}
	if d.Build < 1 {
		return "", errors.New("the build number must be at least 1; increase it with each bundle for the same Kubernetes version")
	}
	return fmt.Sprintf("%s%d", strings.TrimSuffix(latest, "latest"), d.Build), nil
}

func (b *Built) add(d *Definition, p Package) error {
	out := packagesv1.BundlePackage{Name: p.Name, WorkloadOnly: p.WorkloadOnly}
	out.Source.Registry, out.Source.Repository = p.Registry, p.Repository
	for _, v := range p.Versions {
		chart, archive, err := readChart(filepath.Join(d.dir, v.Chart))
		if err != nil {
			return err
		}
		version, err := d.version(v, chart, archive)
		if err != nil {
			return fmt.Errorf("chart %q: %w", v.Chart, err)
		}
		out.Name = cmp.Or(out.Name, chart.Name)
		out.Source.Repository = cmp.Or(out.Source.Repository, registry.ChartsRepository+"/"+chart.Name)
		out.Source.Versions = append(out.Source.Versions, version)
		b.Charts, b.Archives = append(b.Charts, chart), append(b.Archives, archive)
	}
	b.Bundle.Spec.Packages = append(b.Bundle.Spec.Packages, out)
	return nil
}

func (d *Definition) version(v Version, chart *registry.Chart, archive []byte) (packagesv1.SourceVersion, error) {
	content, err := chart.Content()
	if err != nil {
		return packagesv1.SourceVersion{}, err
	}
	schema, err := d.schema(v, chart, archive)
	if err != nil {
		return packagesv1.SourceVersion{}, err
	}
	return packagesv1.SourceVersion{
		Name: content.Tag, Digest: digest.FromBytes(content.Manifest).String(), Images: v.Images, Schema: bundle.EncodeSchema(schema), Dependencies: v.Dependencies,
	}, nil
}

func (d *Definition) schema(v Version, chart *registry.Chart, archive []byte) ([]byte, error) {
	if v.Schema == "" {
		return fileOf(archive, chart.Name+"/values.schema.json")
	}
	text, err := os.ReadFile(filepath.Join(d.dir, v.Schema))
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return text, nil
}
