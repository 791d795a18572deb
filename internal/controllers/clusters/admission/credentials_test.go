package admission

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// localSecret creates the credentials of local machines, and removes them with the test.
func (w *world) localSecret(namespaces string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials}}
	if namespaces != "" {
		secret.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: namespaces}
	}
	w.must(w.Create(w.Context(), secret))
	w.Cleanup(func() {
		if err := w.Delete(context.Background(), secret); err != nil {
			w.Error(err)
		}
	})
}

// TestTenantsGetNoLocalMachines plays a creator, who would be root on machines of the host.
func TestTenantsGetNoLocalMachines(t *testing.T) {
	const missing = "none"
	const closed, reserved = "may not be used by clusters in namespace", "by administrators only"
	for name, tc := range map[string]struct {
		opened, namespace       string
		creator, admin, changed string
	}{
		"a namespace of tenants":           {"", "", closed, closed, closed},
		"another namespace is open":        {"other", "", closed, closed, closed},
		"the namespace is open":            {"other,NS", "", "", "", ""},
		"all namespaces are open":          {"*", "", "", "", ""},
		"a namespace of administrators":    {"", "default", reserved, "", reserved},
		"default, while another is open":   {"NS", "default", reserved, "", reserved},
		"default, which is open":           {"default", "default", "", "", ""},
		"the namespace of the credentials": {"", anywherev1.SystemNamespace, reserved, "", reserved},
		"default, without a Secret":        {missing, "default", reserved, "", reserved},
		"tenants, without a Secret":        {missing, "", "", "", ""}, // the controller waits for it
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.opened != missing {
				w.localSecret(strings.ReplaceAll(tc.opened, "NS", w.ns))
			}
			if tc.namespace != "" {
				w.ns = tc.namespace
			}
			creator := w.as(authenticationv1.UserInfo{Username: "creator", Groups: []string{"system:authenticated"}})
			admin := w.as(authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}})
			c := w.workload("local")
			_, err := w.ValidateCreate(creator, c)
			w.expect("created by a creator", tc.creator, err)
			_, err = w.ValidateCreate(admin, c)
			w.expect("created by an administrator", tc.admin, err)
			more := c.DeepCopy()
			more.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(2)
			_, err = w.ValidateUpdate(creator, c, more)
			w.expect("scaled by a creator", tc.changed, err)
			c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
			_, err = w.ValidateCreate(creator, c)
			w.expect("created paused by a creator", "only administrators may create an object", err)
			_, err = w.ValidateCreate(admin, c)
			w.expect("moved here by an administrator", "", err)
			w.byReference(creator, tc.creator)
		})
	}
}

// byReference reaches for the same credentials through a PacketDatacenterConfig.
func (w *world) byReference(ctx context.Context, want string) {
	w.Helper()
	d := &anywherev1.PacketDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "local"}, Spec: anywherev1.PacketDatacenterConfigSpec{
		ProjectID: "p", Metro: "da", CredentialsRef: &anywherev1.CredentialsRef{Name: anywherev1.LocalCredentials},
	}}
	w.expect("by reference", want, w.credentials.ofDatacenter(ctx, d))
	w.must(w.Create(w.Context(), d))
	defer func() { w.must(w.Delete(context.Background(), d)) }()
	c := w.workload("local")
	c.Spec.DatacenterRef = anywherev1.Ref{Kind: anywherev1.PacketDatacenterConfigKind, Name: d.Name}
	w.expect("with the datacenter of an administrator", want, w.credentials.ofCluster(ctx, c))
}
