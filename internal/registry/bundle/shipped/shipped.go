// Package shipped publishes the packages that ship with Drover to a registry, in bundles signed
// with a key of the plane.
package shipped

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/catalog"
	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

// Repository is the default repository of bundles.
const Repository = "eks-anywhere-packages-bundles"

// paths are the paths in a registry that get the bundles: the root, and the path that manifests for
// the vendor's registry use.
var paths = []string{"", "/eks-anywhere"}

// PublishAll publishes the bundles at all paths of a registry.
func PublishAll(ctx context.Context, to transfer.Options, signer crypto.Signer) error {
	host := to.Address
	for _, path := range paths {
		to.Address = host + path
		r, err := transfer.Open(to)
		if err != nil {
			return err
		}
		if err := Publish(ctx, r, signer); err != nil {
			return err
		}
	}
	return nil
}

// Publish publishes missing and changed bundles. It keeps bundles of the same name that are signed
// with another key, and the latest tag if a newer bundle has it.
func Publish(ctx context.Context, to *transfer.Registry, signer crypto.Signer) error {
	keys, err := publicKeys(signer)
	if err != nil {
		return err
	}
	all, err := Bundles()
	if err != nil {
		return err
	}
	for _, built := range all {
		ref := transfer.Ref{Kind: transfer.KindBundle, Repository: Repository, Tag: built.Bundle.Name}
		there, err := transfer.Fetch(ctx, to, ref)
		if err == nil && (bundle.Verify(there.PackageBundle, keys) != nil || unchanged(there.PackageBundle, built.Bundle)) {
			continue
		}
		if err := bundle.Sign(built.Bundle, signer); err != nil {
			return err
		}
		if _, err := transfer.Publish(ctx, to, transfer.Publication{Bundle: built.Bundle, Charts: built.Charts, Repository: Repository}); err != nil {
			return err
		}
	}
	return nil
}

func publicKeys(signer crypto.Signer) (bundle.Keys, error) {
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, err
	}
	return bundle.ParseKeys(map[string][]byte{"the plane's own": []byte(base64.StdEncoding.EncodeToString(der))})
}

func unchanged(there, built *packagesv1.PackageBundle) bool {
	return len(bundle.Compare(there, built).Packages) == 0
}

// Bundles builds all bundles, unsigned and oldest first.
func Bundles() ([]*pack.Built, error) {
	dir, err := os.MkdirTemp("", "drover-catalog-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, files := range map[string]fs.FS{"catalog": catalog.Files, "charts": charts.Files} {
		if err := os.CopyFS(filepath.Join(dir, name), files); err != nil {
			return nil, fmt.Errorf("extracting %s: %w", name, err)
		}
	}
	definitions, err := filepath.Glob(filepath.Join(dir, "catalog", "build-*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*pack.Built
	for _, version := range catalog.KubernetesVersions {
		for _, file := range definitions {
			d, err := pack.ReadDefinition(file)
			if err != nil {
				return nil, err
			}
			d.KubeVersion = version
			built, err := pack.Build(d)
			if err != nil {
				return nil, fmt.Errorf("building the catalog: %w", err)
			}
			all = append(all, built)
		}
	}
	return all, nil
}

// Names returns the names of all bundles, oldest first.
func Names() ([]string, error) {
	definitions, err := fs.Glob(catalog.Files, "build-*.yaml")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, version := range catalog.KubernetesVersions {
		for _, file := range definitions {
			text, err := catalog.Files.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading the catalog: %w", err)
			}
			d := &pack.Definition{}
			if err := yaml.Unmarshal(text, d); err != nil {
				return nil, fmt.Errorf("reading %q of the catalog: %w", file, err)
			}
			d.KubeVersion = version
			name, err := d.Name()
			if err != nil {
				return nil, err
			}
			out = append(out, name)
		}
	}
	return out, nil
}
