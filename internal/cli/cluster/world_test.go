package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a management plane whose manager the test simulates, with a working directory for
// commands.
type world struct {
	*testing.T

	client     client.WithWatch
	kubeconfig string
	namespace  string
	// answer is what someone types at a terminal; empty means that there is no terminal.
	answer string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("DROVER_HOME", filepath.Join(t.TempDir(), "home"))
	plane, err := inspect.Connect(server.Config)
	w := &world{T: t, kubeconfig: filepath.Join(t.TempDir(), "mgmt.kubeconfig"), namespace: server.Namespace(t)}
	w.must(err)
	w.client = plane.Client
	w.must(clientcmd.WriteToFile(*kubetest.AsKubeconfig(server.Config), w.kubeconfig))
	w.must(client.IgnoreAlreadyExists(w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: anywherev1.SystemNamespace}})))
	w.must(client.IgnoreAlreadyExists(w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials},
	})))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// spec writes the spec of a workload cluster to a file.
func (w *world) spec(name string, edit ...func(string) string) string {
	w.Helper()
	text := (&starter{name: name, provider: "docker", workload: true}).text()
	text = strings.ReplaceAll(text, "metadata:\n", "metadata:\n  namespace: "+w.namespace+"\n")
	for _, e := range edit {
		text = e(text)
	}
	w.must(os.WriteFile(name+".yaml", []byte(text), 0o600))
	return name + ".yaml"
}

func replacing(from, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, from, to, 1) }
}

// outcome is what a command printed, and its exit code.
type outcome struct {
	out, err string
	code     int
}

// run runs a command without --kubeconfig.
func (w *world) run(ctx context.Context, args ...string) outcome {
	w.Helper()
	var out, errs bytes.Buffer
	io := &ui.IO{In: strings.NewReader(w.answer), Out: &out, Err: &errs, CanAsk: w.answer != ""}
	root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
	root.AddGroup(&cobra.Group{ID: "clusters"})
	AddCommands(root, "clusters", io)
	root.SetArgs(Args(append([]string{"drover"}, args...)))
	root.SetOut(&out)
	root.SetErr(&errs)
	code := ui.Report(&errs, root.ExecuteContext(ctx))
	return outcome{out.String(), errs.String(), code}
}

// drover runs a command with the kubeconfig of the plane.
func (w *world) drover(args ...string) outcome {
	w.Helper()
	return w.run(w.Context(), append(args, "--kubeconfig", w.kubeconfig)...)
}

func (w *world) ok(args ...string) outcome {
	w.Helper()
	got := w.drover(args...)
	if got.code != 0 {
		w.Fatalf("drover %s ended with %d:\n%s", strings.Join(args, " "), got.code, got.err)
	}
	return got
}

// fails runs a command that must fail with all of the words.
func (w *world) fails(words []string, args ...string) outcome {
	w.Helper()
	got := w.drover(args...)
	if got.code == 0 {
		w.Fatalf("drover %s does not fail:\n%s", strings.Join(args, " "), got.err)
	}
	for _, word := range words {
		if !strings.Contains(got.err, word) {
			w.Errorf("drover %s does not mention %q:\n%s", strings.Join(args, " "), word, got.err)
		}
	}
	return got
}

// manage simulates the manager for one cluster: it reconciles the cluster, and finalizes its
// deletion.
func (w *world) manage(name string) {
	ctx, cancel := context.WithCancel(context.Background())
	key := client.ObjectKey{Namespace: w.namespace, Name: name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := w.reconcile(ctx, key); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				w.Errorf("simulating the manager: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
}

func (w *world) reconcile(ctx context.Context, key client.ObjectKey) error {
	c := &anywherev1.Cluster{}
	if err := w.client.Get(ctx, key, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() {
		c.Finalizers = nil
		return w.client.Update(ctx, c)
	}
	if c.IsPaused() {
		return nil
	}
	if len(c.Finalizers) == 0 {
		c.Finalizers = []string{anywherev1.ClusterFinalizer}
		return w.client.Update(ctx, c)
	}
	config, err := spec.Gather(ctx, w.client, c)
	if err != nil {
		return nil //nolint:nilerr // not complete yet
	}
	before := c.Status.DeepCopy()
	c.Status.ObservedGeneration, c.Status.ReconciledGeneration, c.Status.ChildrenReconciledGeneration = c.Generation, c.Generation, 0
	for _, o := range config.Objects() {
		if o != client.Object(c) {
			c.Status.ChildrenReconciledGeneration += o.GetGeneration()
		}
	}
	c.Status.Version = "v" + c.Spec.KubernetesVersion + ".0"
	for _, kind := range []string{
		anywherev1.ControlPlaneInitialized, anywherev1.ControlPlaneReady, anywherev1.DefaultCNIConfigured, anywherev1.WorkersReady, anywherev1.Ready,
	} {
		apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Well", ObservedGeneration: c.Generation})
	}
	err = w.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: key.Name + "-kubeconfig"},
		Data:       map[string][]byte{"value": []byte(kubetest.ExampleKubeconfig(key.Name))},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if before.ObservedGeneration == c.Generation && before.ChildrenReconciledGeneration == c.Status.ChildrenReconciledGeneration {
		return nil
	}
	return w.client.Status().Update(ctx, c)
}

// cluster reads a cluster.
func (w *world) cluster(name string) *anywherev1.Cluster {
	w.Helper()
	c := &anywherev1.Cluster{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, c))
	return c
}

// gone reports whether there is no such cluster.
func (w *world) gone(name string) bool {
	w.Helper()
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &anywherev1.Cluster{})
	return apierrors.IsNotFound(err)
}

// await waits until done.
func (w *world) await(what string, done func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within 30 s", what)
		}
	}
}

var errNone = errors.New("no such line")

// line returns the first line with all of the words.
func line(text string, words ...string) (string, error) {
	for l := range strings.Lines(text) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(l, word)
		}
		if all {
			return l, nil
		}
	}
	return "", errNone
}
