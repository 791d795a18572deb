package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultTimeout is the timeout of an operation on a cluster if the spec sets none.
const DefaultTimeout = 10 * time.Minute

// ReconcileStrategy says how long Drover looks after a release.
//
// +kubebuilder:validation:Enum="";InstallOnce;Continuous
type ReconcileStrategy string

const (
	// Continuous keeps the release as the HelmChartProxy says. It is what an empty strategy means.
	Continuous ReconcileStrategy = "Continuous"
	// InstallOnce installs, and then leaves the release alone for good.
	InstallOnce ReconcileStrategy = "InstallOnce"
)

// DefaultCredentialsKey is the key of credentials in a Secret if none is named.
const DefaultCredentialsKey = "config.json"

// CAKey is the key of the certificates in the Secret that tlsConfig names.
const CAKey = "ca.crt"

// HelmOptions are passed to Helm.
type HelmOptions struct {
	// disableHooks leaves hooks out of every operation.
	// +optional
	DisableHooks bool `json:"disableHooks,omitempty"`
	// wait counts an operation as done when the objects are ready.
	// +optional
	Wait bool `json:"wait,omitempty"`
	// waitForJobs counts Jobs in, if wait is set.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`
	// dependencyUpdate is accepted for compatibility: charts come with their dependencies from a repository.
	// +optional
	DependencyUpdate bool `json:"dependencyUpdate,omitempty"`
	// timeout bounds each operation. The default is ten minutes.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// skipCRDs leaves out what is in the chart's crds directory.
	// +optional
	SkipCRDs bool `json:"skipCRDs,omitempty"`
	// options renders the notes of subcharts too. The name is what manifests have always had for it.
	// +optional
	SubNotes bool `json:"options,omitempty"`
	// disableOpenAPIValidation skips checking rendered objects against the cluster's schema.
	// +optional
	DisableOpenAPIValidation bool `json:"disableOpenAPIValidation,omitempty"`
	// atomic undoes an operation that failed; it implies wait.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// enableClientCache is accepted for compatibility: Drover shares clients of registries anyway.
	// +optional
	// +kubebuilder:default=false
	EnableClientCache bool `json:"enableClientCache"`
	// takeOwnership adopts objects that are there already and belong to no release.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`

	// +optional
	Install HelmInstallOptions `json:"install,omitempty"`
	// +optional
	Upgrade HelmUpgradeOptions `json:"upgrade,omitempty"`
	// +optional
	Uninstall *HelmUninstallOptions `json:"uninstall,omitempty"`
}

// HelmInstallOptions matter for the first revision.
type HelmInstallOptions struct {
	// createNamespace makes the release's namespace if it is missing.
	// +optional
	// +kubebuilder:default=true
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// includeCRDs renders the chart's crds directory into the release.
	// +optional
	IncludeCRDs bool `json:"includeCRDs,omitempty"`
}

// HelmUpgradeOptions matter for all later revisions.
type HelmUpgradeOptions struct {
	// force replaces objects instead of changing them.
	// +optional
	Force bool `json:"force,omitempty"`
	// resetValues starts from the chart's values.
	// +optional
	ResetValues bool `json:"resetValues,omitempty"`
	// reuseValues starts from the values of the last revision.
	// +optional
	ReuseValues bool `json:"reuseValues,omitempty"`
	// resetThenReuseValues starts from the chart's values with those of the last revision on top.
	// +optional
	ResetThenReuseValues bool `json:"resetThenReuseValues,omitempty"`
	// recreate is accepted for compatibility; Helm has dropped it.
	// +optional
	Recreate bool `json:"recreate,omitempty"`
	// maxHistory is how many revisions are kept; 0 keeps all.
	// +optional
	// +kubebuilder:default=10
	MaxHistory *int `json:"maxHistory,omitempty"`
	// cleanupOnFail removes objects that a failed upgrade made.
	// +optional
	CleanupOnFail bool `json:"cleanupOnFail,omitempty"`
}

// HelmUninstallOptions matter when a release goes.
type HelmUninstallOptions struct {
	// keepHistory marks the release as uninstalled instead of forgetting it.
	// +optional
	KeepHistory bool `json:"keepHistory,omitempty"`
	// description is noted with the uninstalled release.
	// +optional
	Description string `json:"description,omitempty"`
	// beforeCluster uninstalls the release before its Cluster is deleted, for charts that own things outside of it.
	// +optional
	BeforeCluster bool `json:"beforeCluster,omitempty"`
	// giveUpAfter bounds how long a cluster that can't be reached holds up deletion; what was left behind is told in an event. Without
	// it deletion waits until the cluster answers or its Cluster object is gone.
	// +optional
	GiveUpAfter *metav1.Duration `json:"giveUpAfter,omitempty"`
}

// Credentials name what opens a registry or a repository.
type Credentials struct {
	// secret holds the credentials. Its namespace is that of the object if empty.
	Secret corev1.SecretReference `json:"secret"`
	// key in the Secret: a docker config.json, for OCI registries and for repositories alike. A Secret of type
	// kubernetes.io/basic-auth needs no key.
	// +kubebuilder:default=config.json
	Key string `json:"key"`
}

// TLSConfig says whom to trust.
type TLSConfig struct {
	// caSecret holds certificates under the key ca.crt. Its namespace is that of the object if empty.
	// +optional
	CASecretRef *corev1.SecretReference `json:"caSecret,omitempty"`
	// insecureSkipTLSVerify trusts everybody.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
}
