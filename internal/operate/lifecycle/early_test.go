package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestDroverIsInstalledBeforeTheClusterIsReady(t *testing.T) {
	w, own := newWorld(t), kubetest.Start(t)
	m, c := w.management(), w.workload("mgmt")
	m.Image, m.Config.Packet = "drover.example/manager:1", &anywherev1.PacketDatacenterConfig{}
	w.must(c.connect(t.Context()))
	end := m.installEarly(t.Context(), c)
	defer end()

	way, err := clientcmd.Write(*kubetest.AsKubeconfig(own.Config))
	w.must(err)
	w.must(w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mgmt-kubeconfig"}, Data: map[string][]byte{"value": way},
	}))
	time.Sleep(3 * answerInterval)
	deployments := own.Clientset(t).AppsV1().Deployments(config.Namespace)
	if _, err := deployments.Get(t.Context(), config.ServiceAccount, metav1.GetOptions{}); err == nil {
		t.Error("it came before the cluster's controllers")
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = own.Clientset(t).CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(t.Context(), account, metav1.CreateOptions{})
	w.must(err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		d, err := deployments.Get(t.Context(), config.ServiceAccount, metav1.GetOptions{})
		if err == nil {
			if image := d.Spec.Template.Spec.Containers[0].Image; image != m.Image {
				t.Errorf("its manager runs %q", image)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestEarlyInstallationEndsWithItsPhase(t *testing.T) {
	w := newWorld(t)
	m, c := w.management(), w.workload("mute")
	w.must(c.connect(t.Context()))
	ended := make(chan struct{})
	end := m.installEarly(t.Context(), c)
	go func() { end(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the head start does not end with the phase that it belongs to")
	}
}
