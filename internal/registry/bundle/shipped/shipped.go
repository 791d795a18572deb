// Package shipped puts the packages that come with Drover into a registry, in bundles that are signed with a key of the plane's own.
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
	"github.com/drover-dev/drover/catalogue"
	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

// Repository is where bundles are looked for, unless somebody chooses another.
const Repository = "eks-anywhere-packages-bundles"

// places are where bundles are offered in a registry that stands for others: below its root, and where manifests look that were written for
// the vendor's registry.
var places = []string{"", "/eks-anywhere"}

// Offer publishes at all places of a registry.
func Offer(ctx context.Context, to transfer.Options, signer crypto.Signer) error {
	host := to.Address
	for _, place := range places {
		to.Address = host + place
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

// Publish puts all bundles in that are not there. What others have put in their place stays, and so does the tag for the latest if it is that
// of a newer one.
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

// Bundles builds all, unsigned, the older ones first.
func Bundles() ([]*pack.Built, error) {
	dir, err := os.MkdirTemp("", "drover-catalogue-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, files := range map[string]fs.FS{"catalogue": catalogue.Files, "charts": charts.Files} {
		if err := os.CopyFS(filepath.Join(dir, name), files); err != nil {
			return nil, fmt.Errorf("unpacking the %s: %w", name, err)
		}
	}
	definitions, err := filepath.Glob(filepath.Join(dir, "catalogue", "build-*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*pack.Built
	for _, version := range catalogue.KubernetesVersions {
		for _, file := range definitions {
			d, err := pack.ReadDefinition(file)
			if err != nil {
				return nil, err
			}
			d.KubeVersion = version
			built, err := pack.Build(d)
			if err != nil {
				return nil, fmt.Errorf("building the catalogue: %w", err)
			}
			all = append(all, built)
		}
	}
	return all, nil
}

// Names are those of all bundles, the older ones first.
func Names() ([]string, error) {
	definitions, err := fs.Glob(catalogue.Files, "build-*.yaml")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, version := range catalogue.KubernetesVersions {
		for _, file := range definitions {
			text, err := catalogue.Files.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading the catalogue: %w", err)
			}
			d := &pack.Definition{}
			if err := yaml.Unmarshal(text, d); err != nil {
				return nil, fmt.Errorf("reading %q of the catalogue: %w", file, err)
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
