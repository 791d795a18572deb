package bootstrap

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// object returns an object of a kind, with changes.
func object(apiVersion, kind, namespace, name string, edit ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	for _, e := range edit {
		e(u)
	}
	return u
}

func labeled(key, value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		labels := map[string]string{key: value}
		maps.Copy(labels, u.GetLabels())
		u.SetLabels(labels)
	}
}

func typed(kind string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.Object["type"] = kind }
}

func withUID(uid string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetUID(types.UID(uid)) }
}

func onCluster(namespace, name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"clusterRef": map[string]any{"name": name, "namespace": namespace}}
	}
}

func ofSchedule(cluster string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"clusterName": cluster} }
}

func ownedByCluster(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name}})
	}
}

// shared is a namespace with clusters a and b; cluster a is moved.
func shared() *selection {
	return &selection{
		cluster:     types.NamespacedName{Namespace: SystemNamespace, Name: "a"},
		controllers: map[string]string{"a": "", "b": ""},
		charts:      map[types.UID][]string{"on-a": {"a", "b"}, "on-b": {"b"}},
		mine:        map[string]bool{"FluxConfig/team/both": true, "PacketMachineConfig/team/a": true},
		others:      map[string]bool{"FluxConfig/team/both": true, "PacketMachineConfig/team/b": true},
		credentials: map[string]bool{"packet-credentials": true},
	}
}

func TestDispositionOfEachKind(t *testing.T) {
	var (
		capi   = clusterv1.GroupVersion.String()
		ours   = anywherev1.GroupVersion.String()
		addons = addonsv1.GroupVersion.String()
		packs  = packagesv1.GroupVersion.String()
		drover = droverv1.GroupVersion.String()
		system = SystemNamespace
	)
	tests := map[string]struct {
		object *unstructured.Unstructured
		want   disposition
	}{
		"its Cluster API Cluster":                  {object(capi, "Cluster", system, "a"), moved},
		"that of another cluster":                  {object(capi, "Cluster", system, "b"), ignored},
		"one of the same name elsewhere":           {object(capi, "Cluster", "default", "a"), ignored},
		"its Machine":                              {object(capi, "Machine", system, "a-1", labeled(clusterv1.ClusterNameLabel, "a")), linked},
		"a Machine of another cluster":             {object(capi, "Machine", system, "b-1", labeled(clusterv1.ClusterNameLabel, "b")), ignored},
		"an object that its Cluster owns":          {object("v1", "ConfigMap", system, "x", ownedByCluster("a")), linked},
		"an object that another Cluster owns":      {object("v1", "ConfigMap", system, "x", ownedByCluster("b")), ignored},
		"an object that names no cluster":          {object("v1", "ConfigMap", system, "x"), linked},
		"an object of another namespace":           {object("v1", "ConfigMap", "default", "x"), ignored},
		"its Cluster of Drover's":                  {object(ours, "Cluster", "team", "a"), moved},
		"another Cluster of Drover's":              {object(ours, "Cluster", "team", "b"), ignored},
		"a config that only it references":         {object(ours, "PacketMachineConfig", "team", "a"), moved},
		"a config that both reference":             {object(ours, "FluxConfig", "team", "both"), copied},
		"a config that only the other references":  {object(ours, "PacketMachineConfig", "team", "b"), ignored},
		"an unused config":                         {object(ours, "PacketMachineConfig", "team", "c"), ignored},
		"its HelmReleaseProxy":                     {object(addons, "HelmReleaseProxy", system, "r", onCluster(system, "a")), linked},
		"its HelmReleaseProxy, without namespace":  {object(addons, "HelmReleaseProxy", system, "r", onCluster("", "a")), linked},
		"a HelmReleaseProxy of another cluster":    {object(addons, "HelmReleaseProxy", system, "r", onCluster(system, "b")), ignored},
		"a HelmReleaseProxy of a namesake":         {object(addons, "HelmReleaseProxy", system, "r", onCluster("default", "a")), ignored},
		"a HelmChartProxy on both":                 {object(addons, "HelmChartProxy", system, "p", withUID("on-a")), copied},
		"a HelmChartProxy on the other":            {object(addons, "HelmChartProxy", system, "p", withUID("on-b")), ignored},
		"a HelmChartProxy labeled with it":         {object(addons, "HelmChartProxy", system, "p", labeled(anywherev1.ClusterNameLabel, "a")), moved},
		"a HelmChartProxy labeled with the other":  {object(addons, "HelmChartProxy", system, "p", labeled(anywherev1.ClusterNameLabel, "b")), ignored},
		"a ClusterResourceSet":                     {object(addons, "ClusterResourceSet", system, "s"), copied},
		"its EtcdSnapshotSchedule":                 {object(drover, "EtcdSnapshotSchedule", system, "nightly", ofSchedule("a")), moved},
		"an EtcdSnapshotSchedule of another":       {object(drover, "EtcdSnapshotSchedule", system, "nightly", ofSchedule("b")), ignored},
		"an EtcdSnapshotSchedule of a namesake":    {object(drover, "EtcdSnapshotSchedule", "default", "nightly", ofSchedule("a")), ignored},
		"its PackageBundleController":              {object(packs, "PackageBundleController", packagesv1.Namespace, "a"), moved},
		"another PackageBundleController":          {object(packs, "PackageBundleController", packagesv1.Namespace, "b"), ignored},
		"a PackageBundle":                          {object(packs, "PackageBundle", packagesv1.Namespace, "v1"), copied},
		"its Package":                              {object(packs, "Package", packagesv1.Namespace, "a-hello"), moved},
		"its Package in its own namespace":         {object(packs, "Package", packagesv1.NamespacePrefix+"a", "hello"), moved},
		"a Package of another cluster":             {object(packs, "Package", packagesv1.Namespace, "b-hello"), ignored},
		"a Secret of its packages":                 {object("v1", "Secret", packagesv1.NamespacePrefix+"a", "login"), moved},
		"a Secret of all packages":                 {object("v1", "Secret", packagesv1.Namespace, "login"), copied},
		"a Secret elsewhere":                       {object("v1", "Secret", "default", "x"), ignored},
		"the credentials of its infrastructure":    {object("v1", "Secret", system, "packet-credentials"), copied},
		"the credentials of registries":            {object("v1", "Secret", system, anywherev1.RegistryCredentials), copied},
		"a Secret labeled to be moved":             {object("v1", "Secret", system, "x", labeled(clusterctlv1.ClusterctlMoveLabel, "")), copied},
		"the userdata of its etcd":                 {object("v1", "Secret", system, "a-etcd-0", labeled(clusterctlv1.ClusterctlMoveLabel, ""), labeled(clusterv1.ClusterNameLabel, "a")), linked},
		"the userdata of the etcd of another":      {object("v1", "Secret", system, "b-etcd-0", labeled(clusterctlv1.ClusterctlMoveLabel, ""), labeled(clusterv1.ClusterNameLabel, "b")), ignored},
		"its encryption keys":                      {object("v1", "Secret", system, "a-encryption", labeled(clusterctlv1.ClusterctlMoveLabel, ""), labeled(anywherev1.ClusterNameLabel, "a")), moved},
		"the encryption keys of another cluster":   {object("v1", "Secret", system, "b-encryption", labeled(clusterctlv1.ClusterctlMoveLabel, ""), labeled(anywherev1.ClusterNameLabel, "b")), ignored},
		"its kubeconfig":                           {object("v1", "Secret", system, "a-kubeconfig", labeled(clusterv1.ClusterNameLabel, "a")), linked},
		"the kubeconfig of another cluster":        {object("v1", "Secret", system, "b-kubeconfig", labeled(clusterv1.ClusterNameLabel, "b")), ignored},
		"the token of a service account":           {object("v1", "Secret", system, "t", typed("kubernetes.io/service-account-token")), ignored},
		"the record of a Helm release":             {object("v1", "Secret", system, "sh.helm.release.v1.x", typed("helm.sh/release.v1")), ignored},
		"a type that only looks like one of those": {object("v1", "Secret", system, "packet-credentials", typed("Opaque")), copied},
	}
	for name, tt := range tests {
		if got := shared().disposition(tt.object); got != tt.want {
			t.Errorf("%s: disposition %d, want %d", name, got, tt.want)
		}
	}
}

func TestOnlyClusterMovesItsAddOns(t *testing.T) {
	s := shared()
	s.alone = true
	for _, kind := range []string{"HelmChartProxy", "ClusterResourceSet"} {
		if got := s.disposition(object(addonsv1.GroupVersion.String(), kind, SystemNamespace, "x")); got != moved {
			t.Errorf("%s: disposition %d, want %d", kind, got, moved)
		}
	}
}

func TestClusterWithoutPackagesMovesNoBundles(t *testing.T) {
	s := shared()
	s.controllers = map[string]string{"b": ""}
	for _, o := range []*unstructured.Unstructured{
		object(packagesv1.GroupVersion.String(), "PackageBundle", packagesv1.Namespace, "v1"),
		object("v1", "Secret", packagesv1.Namespace, "login"),
	} {
		if got := s.disposition(o); got != ignored {
			t.Errorf("%s: disposition %d, want %d", o.GetKind(), got, ignored)
		}
	}
}

func TestCollectRefsFindsReferencesAnywhere(t *testing.T) {
	var got []string
	collectRefs(map[string]any{
		"datacenterRef": map[string]any{"kind": "PacketDatacenterConfig", "name": "dc"},
		"groups": []any{
			map[string]any{"name": "md-0", "machineGroupRef": map[string]any{"kind": "PacketMachineConfig", "name": "m"}},
			"not a reference",
		},
		"incomplete": map[string]any{"kind": "FluxConfig"},
		"count":      int64(1),
	}, func(kind, name string) { got = append(got, kind+"/"+name) })
	slices.Sort(got)
	if diff := cmp.Diff([]string{"PacketDatacenterConfig/dc", "PacketMachineConfig/m"}, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}
