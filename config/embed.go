// Package config owns the Kubernetes manifests of an installation of Drover's manager: CRDs,
// webhook configurations, roles and the Deployment.
//
// The files under crd/ and webhook/ are derived from the pinned Cluster API module and from api/ by
// "go generate", and those under flux/crd/ from the modules in kube/flux; those under rbac/,
// flux/rbac/ and manager/ are written by hand. The package only holds the
// bytes. Package install applies them to a running API server, hack/components renders them into
// provider-components.yaml.
package config

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:generate go run ../hack/components/upstream -out . -flux ../kube/flux

// Names that the manifests, the manager and the tests share.
const (
	Namespace          = "drover-system"
	ServiceAccount     = "drover-manager"
	WebhookService     = "drover-webhook"
	MutatingWebhooks   = "drover-mutating-webhook-configuration"
	ValidatingWebhooks = "drover-validating-webhook-configuration"

	// BundleKeySecret may contain the key that signs package bundles, as BundleKeyFile, and
	// CredentialsSecret the default credentials for the Packet API.
	BundleKeySecret   = "drover-bundle-key"
	BundleKeyFile     = "bundles.key"
	CredentialsSecret = "drover-packet-credentials"
	// BackupSecret has the settings of scheduled backups, and BackupStatus is the ConfigMap with what
	// became of them.
	BackupSecret = "drover-backup"
	BackupStatus = "drover-backup-status"
	// TenantLabel marks a namespace of a tenant, where add-ons and packages must name a service
	// account.
	TenantLabel = "drover.dev/tenant"
	// OfferAddress is the loopback address at which the manager serves the charts and bundles that
	// ship with Drover.
	OfferAddress = "127.0.0.1:5000"

	// LabelPartOf marks all objects of an installation.
	LabelPartOf = "app.kubernetes.io/part-of"
	PartOf      = "drover"

	// LabelInjectCA marks the objects whose caBundle the manager maintains.
	LabelInjectCA = "drover.dev/inject-ca"

	// ImagePlaceholder is replaced with the image in the Deployment.
	ImagePlaceholder = "drover.invalid/manager:unset"
)

//go:embed crd/*.yaml webhook/*.yaml rbac/*.yaml manager/*.yaml
var files embed.FS

// Manifest is one object of the installation, as YAML.
type Manifest struct {
	// Name is the file's name without extension; for a CRD it is the name of the CRD.
	Name string
	Data []byte
}

// CRDs returns the CRDs of every kind that the manager serves.
func CRDs() []Manifest { return read("crd") }

// Webhooks returns the mutating and the validating webhook configuration.
func Webhooks() []Manifest { return read("webhook") }

// RBAC returns the service account, its roles and their bindings.
func RBAC() []Manifest { return read("rbac") }

// Manager returns the objects that run and expose the manager inside a cluster, except the
// namespace.
func Manager() []Manifest { return read("manager") }

//go:embed namespace.yaml
var namespace []byte

// NamespaceManifest returns the namespace of an installation.
func NamespaceManifest() Manifest { return Manifest{Name: Namespace, Data: namespace} }

func read(dir string) []Manifest { return readFrom(files, dir) }

// readFrom never fails: the directory was embedded when the program was built.
func readFrom(files embed.FS, dir string) []Manifest {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		panic(err)
	}
	manifests := make([]Manifest, 0, len(entries))
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		data, err := files.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			panic(err)
		}
		manifests = append(manifests, Manifest{Name: strings.TrimSuffix(entry.Name(), ".yaml"), Data: data})
	}
	return manifests
}
