package v1alpha1

// Annotations that keep add-ons in step with the Kubernetes version of their cluster.
const (
	// UpgradeStageAnnotation says when an add-on is upgraded in a Kubernetes upgrade. A chart has it
	// in its Chart.yaml; on a HelmChartProxy, a HelmReleaseProxy or a Package it overrides that of the
	// chart.
	UpgradeStageAnnotation = "drover.dev/upgrade-stage"
	// KubernetesUpgradeAnnotation, on a Cluster of Cluster API, is the Kubernetes upgrade in progress,
	// in JSON. Drover sets and removes it.
	KubernetesUpgradeAnnotation = "drover.dev/kubernetes-upgrade"
	// KubernetesVersionAnnotation, on a HelmReleaseProxy, is the Kubernetes version of the last
	// upgrade that its HelmChartProxy was rendered for.
	KubernetesVersionAnnotation = "drover.dev/kubernetes-version"
)

// UpgradeStage is when an add-on is upgraded in a Kubernetes upgrade.
type UpgradeStage string

// Stages of an upgrade, in order.
const (
	// BeforeControlPlane: the control plane waits until the add-on is ready for the new version.
	BeforeControlPlane UpgradeStage = "BeforeControlPlane"
	// BeforeWorkers: the add-on sees the new version once the control plane has it, and workers wait
	// until it is ready.
	BeforeWorkers UpgradeStage = "BeforeWorkers"
	// AfterWorkers: the add-on sees the new version once all workers have it.
	AfterWorkers UpgradeStage = "AfterWorkers"
	// NoStage: nothing waits for the add-on.
	NoStage UpgradeStage = "None"
)
