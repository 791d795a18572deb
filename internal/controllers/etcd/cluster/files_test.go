package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

func TestFilesGetTheContentOfSecrets(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "mirror"}, Data: map[string][]byte{"hosts": []byte("server")}}
	client := fake.NewClientBuilder().WithObjects(secret).Build()
	c := &Controller{Secrets: contents.New(client, client)}
	from := func(name, key string) etcdbootstrapv1.File {
		return etcdbootstrapv1.File{Path: "/etc/hosts.toml", ContentFrom: &etcdbootstrapv1.FileSource{Secret: etcdbootstrapv1.SecretFileSource{Name: name, Key: key}}}
	}
	s := &scope{etcd: &etcdv1.EtcdadmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}}
	s.etcd.Spec.EtcdadmConfigSpec.Files = []etcdbootstrapv1.File{{Path: "/a", Content: "b"}, from("mirror", "hosts")}
	got, err := c.resolveFiles(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]etcdbootstrapv1.File{{Path: "/a", Content: "b"}, {Path: "/etc/hosts.toml", Content: "server"}}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if s.etcd.Spec.EtcdadmConfigSpec.Files[1].Content != "" {
		t.Error("the content is in the spec")
	}
	for _, missing := range []etcdbootstrapv1.File{from("mirror", "other"), from("other", "hosts")} {
		s.etcd.Spec.EtcdadmConfigSpec.Files = []etcdbootstrapv1.File{missing}
		_, err := c.resolveFiles(t.Context(), s)
		if wait := reconcile.AsWait(err); wait == nil || wait.Reason != etcdv1.InvalidTemplateReason {
			t.Errorf("%+v: error %v", missing.ContentFrom, err)
		}
	}
}
