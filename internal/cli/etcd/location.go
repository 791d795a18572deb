package etcd

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
)

// bundleVariable names a file with certificates that other tools trust, too.
const bundleVariable = "AWS_CA_BUNDLE"

// openStorage opens the snapshots of a cluster at a location.
func openStorage(location string, cluster client.ObjectKey) (storage.Storage, error) {
	access := storage.Access{}
	var err error
	if access.Registry, err = registryAccess(location); err != nil {
		return nil, err
	}
	if access.S3, err = s3Access(location); err != nil {
		return nil, err
	}
	return storage.Open(location, storage.Cluster{Namespace: cluster.Namespace, Name: cluster.Name}, access)
}

// registryAccess returns the credentials of the embedded plane's registry, if the location is
// there.
func registryAccess(location string) (storage.RegistryAccess, error) {
	host, isRegistry := strings.CutPrefix(location, "oci://")
	if !isRegistry {
		return storage.RegistryAccess{}, nil
	}
	host, _, _ = strings.Cut(host, "/")
	r, err := plane.ReadRegistry(plane.Home{Dir: plane.DefaultHome()})
	if err != nil || !serves(r, host) {
		return storage.RegistryAccess{}, nil //nolint:nilerr // It's another registry.
	}
	ca, err := os.ReadFile(r.CAFile)
	if err != nil {
		return storage.RegistryAccess{}, fmt.Errorf("reading the registry's CA: %w", err)
	}
	password, err := os.ReadFile(r.PasswordFile)
	if err != nil {
		return storage.RegistryAccess{}, fmt.Errorf("reading the registry's password: %w", err)
	}
	roots, err := pki.Pool(ca)
	if err != nil {
		return storage.RegistryAccess{}, fmt.Errorf("reading the registry's CA %q: %w", r.CAFile, err)
	}
	return storage.RegistryAccess{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}},
		Auth:      &authn.Basic{Username: registry.User, Password: strings.TrimSpace(string(password))},
	}, nil
}

// serves reports whether the embedded plane's registry has an address.
func serves(r plane.Registry, host string) bool {
	base, err := url.Parse(r.URL)
	return err == nil && host == base.Host || host == r.Address && host != ""
}

// s3Access returns the settings of an S3 endpoint from the environment.
func s3Access(location string) (storage.S3Access, error) {
	if !strings.HasPrefix(location, "s3://") {
		return storage.S3Access{}, nil
	}
	access := storage.NewS3Access(os.Getenv)
	file := os.Getenv(bundleVariable)
	if file == "" {
		return access, nil
	}
	var err error
	if access.CA, err = os.ReadFile(file); err != nil {
		return access, fmt.Errorf("reading $%s: %w", bundleVariable, err)
	}
	return access, nil
}
