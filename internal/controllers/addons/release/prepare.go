package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"reflect"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// maxName is Helm's limit for the name of a release.
const maxName = 53

// prepare sets what must exist before anything is installed: the finalizer, the cluster label and a
// name for the release.
func (v *visit) prepare(ctx context.Context) error {
	if v.deleting() {
		return nil
	}
	controllerutil.AddFinalizer(v.release, addonsv1.HelmReleaseProxyFinalizer)
	if v.release.Spec.ReleaseName == "" {
		v.release.Spec.ReleaseName = generatedName(v.release)
		setAnnotation(v.release, addonsv1.GeneratedNameAnnotation)
	}
	if v.release.Labels[clusterv1.ClusterNameLabel] == "" {
		if v.release.Labels == nil {
			v.release.Labels = map[string]string{}
		}
		v.release.Labels[clusterv1.ClusterNameLabel] = v.cluster().Name
	}
	return v.writeObject(ctx)
}

// writeObject writes everything but the status, if it changed.
func (v *visit) writeObject(ctx context.Context) error {
	if reflect.DeepEqual(v.before.ObjectMeta, v.release.ObjectMeta) && reflect.DeepEqual(v.before.Spec, v.release.Spec) {
		return nil
	}
	status := v.release.Status
	if err := v.Client.Patch(ctx, v.release, client.MergeFrom(v.before)); err != nil {
		return err
	}
	v.before = v.release.DeepCopy()
	v.release.Status = status
	return nil
}

// generatedName is deterministic, so that a lost write does not change the name.
func generatedName(r *addonsv1.HelmReleaseProxy) string {
	base, _, _ := strings.Cut(path.Base(r.Spec.ChartName), ".")
	sum := sha256.Sum256([]byte(r.UID))
	suffix := "-" + hex.EncodeToString(sum[:])[:10]
	return base[:min(len(base), maxName-len(suffix))] + suffix
}

func setAnnotation(r *addonsv1.HelmReleaseProxy, name string) {
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[name] = "true"
}

// paused reports whether to leave the object alone: it is paused, or clusterctl has moved it to
// another management cluster and deletes only the object, not the release.
func paused(r *addonsv1.HelmReleaseProxy) bool {
	_, moved := r.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return moved || annotations.HasPaused(r)
}
