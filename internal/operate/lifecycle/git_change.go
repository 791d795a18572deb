package lifecycle

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// keptGit is the checkpoint key of a gitRecord.
const keptGit = "git"

// gitRecord is what a checkpoint has about Git: the GitChange that the command follows, or why
// there is none.
type gitRecord struct {
	Action     droverv1.GitAction `json:"action,omitempty"`
	Change     string             `json:"change,omitempty"`
	FluxConfig string             `json:"fluxConfig,omitempty"`
	// Digest identifies the request, so that a changed spec isn't taken for the recorded one.
	Digest string `json:"digest,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Commit is the one that removed the files of a management cluster.
	Commit string `json:"commit,omitempty"`
}

func gitRecordOf(p *phase.Progress) (gitRecord, error) {
	r := gitRecord{}
	_, err := p.Kept(keptGit, &r)
	return r, err
}

// commandMarks are annotations that a command sets for its own duration. They are not part of the
// spec.
var commandMarks = []string{
	anywherev1.CreationAnnotation, anywherev1.ManagedByCLIAnnotation, anywherev1.ManagementComponentsVersionAnnotation,
	anywherev1.PausedAnnotation, anywherev1.TraceAnnotation, fluxAnnotation,
}

// fluxPruneAnnotation keeps Flux from deleting an object whose file is removed.
const fluxPruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"

// submit hands the spec over to the management plane on a route.
func (w *Workload) submit(ctx context.Context, p *phase.Progress, verb Verb, r route) error {
	if !r.isGit() {
		if err := p.Keep(keptGit, gitRecord{Reason: r.Reason}); err != nil {
			return err
		}
		return w.applyAll(ctx)
	}
	return w.commit(ctx, p, verb, r)
}

// commit requests the commit of the spec, or for Delete of the removal of its files. It waits until
// Flux has applied the spec, or until the removal is committed.
func (w *Workload) commit(ctx context.Context, p *phase.Progress, verb Verb, r route) error {
	change, err := w.requestCommit(ctx, p, verb, r)
	if err != nil {
		return err
	}
	if verb == Delete {
		return change.until(ctx, committed, w.Limits.Delete)
	}
	return change.until(ctx, applied, w.ControlPlane)
}

// requestCommit requests the commit, and returns how to wait for it.
func (w *Workload) requestCommit(ctx context.Context, p *phase.Progress, verb Verb, r route) (*changeFollower, error) {
	request, err := w.request(verb, r)
	if err != nil {
		return nil, err
	}
	if err := w.requestOnce(ctx, p, request); err != nil {
		return nil, err
	}
	return w.followChange(p, request.Name), nil
}

// request returns a GitChange without a name.
func (w *Workload) request(verb Verb, r route) (*droverv1.GitChange, error) {
	g := &droverv1.GitChange{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.key().Namespace},
		Spec: droverv1.GitChangeSpec{
			Cluster: w.key().Name, Action: droverv1.GitWrite, FluxConfig: r.FluxConfig,
			Command: fmt.Sprintf("drover %s cluster %s", verb, w.key().Name),
		},
	}
	if verb == Delete {
		g.Spec.Action = droverv1.GitRemove
		return g, nil
	}
	for _, o := range w.Config.Objects() {
		data, err := objectForGit(w.plane.Client, o)
		if err != nil {
			return nil, err
		}
		g.Spec.Objects = append(g.Spec.Objects, runtime.RawExtension{Raw: data})
	}
	return g, nil
}

// objectForGit returns an object as it is committed: what the user specified. Flux never deletes a
// FluxConfig, which other clusters may use.
func objectForGit(c client.Client, o client.Object) ([]byte, error) {
	u, err := manifest(c, o)
	if err != nil {
		return nil, err
	}
	annotations := u.GetAnnotations()
	for _, mark := range commandMarks {
		delete(annotations, mark)
	}
	if u.GetKind() == anywherev1.FluxConfigKind {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[fluxPruneAnnotation] = fluxDisabled
	}
	u.SetAnnotations(annotations)
	return json.Marshal(u)
}

// requestOnce creates a GitChange and names it, unless an earlier run created it. Its name is
// recorded first: an entry without an object is harmless, an object without an entry is committed
// by nobody's will. A recorded one that asks for something else is withdrawn.
func (w *Workload) requestOnce(ctx context.Context, p *phase.Progress, request *droverv1.GitChange) error {
	record, err := gitRecordOf(p)
	if err != nil {
		return err
	}
	digest, err := digestOf(request.Spec)
	if err != nil {
		return err
	}
	usable, err := w.isUsable(ctx, record, digest)
	if err != nil {
		return err
	}
	if !usable {
		record = gitRecord{Action: request.Spec.Action, Change: newChangeName(w.key().Name), FluxConfig: request.Spec.FluxConfig, Digest: digest}
		if err := p.Keep(keptGit, record); err != nil {
			return err
		}
	}
	request.Name = record.Change
	err = w.plane.Client.Create(ctx, request, client.FieldOwner(anywherev1.FieldManagerCLI))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return rejected("GitChange", request.Name, err)
	}
	return nil
}

// isUsable reports whether a recorded GitChange asks for the same and may succeed. It withdraws any
// other, which could be committed later and overwrite what is committed now.
func (w *Workload) isUsable(ctx context.Context, record gitRecord, digest string) (bool, error) {
	if record.Change == "" {
		return false, nil
	}
	live := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: w.key().Namespace, Name: record.Change}}
	err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(live), live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading GitChange %q: %w", record.Change, err)
	}
	if record.Digest == digest && !stateOf(live).final {
		return true, nil
	}
	err = w.plane.Client.Delete(ctx, live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("withdrawing GitChange %q: %w", record.Change, err)
	}
	return false, nil
}

// digestOf identifies what a GitChange asks for.
func digestOf(s droverv1.GitChangeSpec) (string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding a GitChange: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func newChangeName(cluster string) string {
	return cluster + "-" + strings.ToLower(rand.Text()[:10])
}
