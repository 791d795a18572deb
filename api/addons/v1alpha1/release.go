package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultTimeout is the timeout of an operation on a cluster if the spec sets none.
const DefaultTimeout = 10 * time.Minute

// ReconcileStrategy is how long Drover reconciles a release.
//
// +kubebuilder:validation:Enum="";InstallOnce;Continuous
type ReconcileStrategy string

const (
	// Continuous reconciles the release with the HelmChartProxy. It is the default.
	Continuous ReconcileStrategy = "Continuous"
	// InstallOnce installs the release and never changes it again.
	InstallOnce ReconcileStrategy = "InstallOnce"
)

// DefaultCredentialsKey is the default key of credentials in a Secret.
const DefaultCredentialsKey = "config.json"

// CAKey is the key of the certificates in the Secret of tlsConfig.
const CAKey = "ca.crt"

// HelmOptions are options of Helm.
type HelmOptions struct {
	// disableHooks disables all hooks.
	// +optional
	DisableHooks bool `json:"disableHooks,omitempty"`
	// wait completes an operation only when the objects are ready.
	// +optional
	Wait bool `json:"wait,omitempty"`
	// waitForJobs also waits for Jobs, if wait is set.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`
	// dependencyUpdate is accepted for compatibility and has no effect: charts in repositories
	// contain their dependencies.
	// +optional
	DependencyUpdate bool `json:"dependencyUpdate,omitempty"`
	// timeout limits each operation. The default is ten minutes.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// skipCRDs skips the crds directory of the chart.
	// +optional
	SkipCRDs bool `json:"skipCRDs,omitempty"`
	// options renders the notes of subcharts. The name is kept for compatibility.
	// +optional
	SubNotes bool `json:"options,omitempty"`
	// disableOpenAPIValidation skips the validation of objects against the cluster's schema.
	// +optional
	DisableOpenAPIValidation bool `json:"disableOpenAPIValidation,omitempty"`
	// atomic rolls back a failed operation. It implies wait.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// enableClientCache is accepted for compatibility and has no effect: Drover always shares
	// registry clients.
	// +optional
	// +kubebuilder:default=false
	EnableClientCache bool `json:"enableClientCache"`
	// takeOwnership adopts existing objects that belong to no release.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`

	// +optional
	Install HelmInstallOptions `json:"install,omitempty"`
	// +optional
	Upgrade HelmUpgradeOptions `json:"upgrade,omitempty"`
	// +optional
	Uninstall *HelmUninstallOptions `json:"uninstall,omitempty"`
}

// HelmInstallOptions apply to the first revision.
type HelmInstallOptions struct {
	// createNamespace creates the namespace of the release if it is missing.
	// +optional
	// +kubebuilder:default=true
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// includeCRDs makes the crds directory of the chart part of the release.
	// +optional
	IncludeCRDs bool `json:"includeCRDs,omitempty"`
}

// HelmUpgradeOptions apply to later revisions.
type HelmUpgradeOptions struct {
	// force replaces objects instead of patching them.
	// +optional
	Force bool `json:"force,omitempty"`
	// resetValues starts from the values of the chart.
	// +optional
	ResetValues bool `json:"resetValues,omitempty"`
	// reuseValues starts from the values of the last revision.
	// +optional
	ReuseValues bool `json:"reuseValues,omitempty"`
	// resetThenReuseValues starts from the values of the chart, overridden by those of the last
	// revision.
	// +optional
	ResetThenReuseValues bool `json:"resetThenReuseValues,omitempty"`
	// recreate is accepted for compatibility and has no effect: Helm removed it.
	// +optional
	Recreate bool `json:"recreate,omitempty"`
	// maxHistory is how many revisions are kept; 0 keeps all.
	// +optional
	// +kubebuilder:default=10
	MaxHistory *int `json:"maxHistory,omitempty"`
	// cleanupOnFail deletes objects that a failed upgrade created.
	// +optional
	CleanupOnFail bool `json:"cleanupOnFail,omitempty"`
}

// HelmUninstallOptions apply when a release is uninstalled.
type HelmUninstallOptions struct {
	// keepHistory marks the release as uninstalled instead of deleting its records.
	// +optional
	KeepHistory bool `json:"keepHistory,omitempty"`
	// description is recorded with the uninstalled release.
	// +optional
	Description string `json:"description,omitempty"`
	// beforeCluster uninstalls the release before its Cluster is deleted, for charts that own
	// resources outside the cluster.
	// +optional
	BeforeCluster bool `json:"beforeCluster,omitempty"`
	// giveUpAfter limits how long an unreachable cluster delays the deletion; an event reports what
	// was left behind. Without it, deletion waits until the cluster responds or its Cluster object
	// is gone.
	// +optional
	GiveUpAfter *metav1.Duration `json:"giveUpAfter,omitempty"`
}

// Credentials are for a registry or a repository.
type Credentials struct {
	// secret contains the credentials. Its namespace defaults to that of the object; another one
	// requires serviceAccountName.
	Secret corev1.SecretReference `json:"secret"`
	// key is the key of a docker config.json in the Secret, for OCI registries and repositories. A
	// Secret of type kubernetes.io/basic-auth needs no key.
	// +kubebuilder:default=config.json
	Key string `json:"key"`
}

// TLSConfig configures trust.
type TLSConfig struct {
	// caSecret contains certificates under the key ca.crt. Its namespace defaults to that of the
	// object; another one requires serviceAccountName.
	// +optional
	CASecretRef *corev1.SecretReference `json:"caSecret,omitempty"`
	// insecureSkipTLSVerify disables the verification of certificates.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
}
