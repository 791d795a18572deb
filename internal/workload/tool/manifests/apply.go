package manifests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

// fingerprint identifies the package and its values.
func fingerprint(want tool.Want) string {
	text, _ := json.Marshal([]any{want.Resolved.Digest, want.Values}) // values come from YAML, and maps are sorted
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// upToDate reports whether a record is a complete deployment of what is wanted.
func (o *operation) upToDate(rec *record) bool {
	return rec != nil && rec.Status == tool.Deployed && rec.Fingerprint == fingerprint(o.want)
}

func (o *operation) apply(ctx context.Context, rec *record) (tool.State, error) {
	if o.upToDate(rec) {
		var err error
		if o.want.Correct {
			err = o.correct(ctx, rec)
		}
		return rec.state(), err
	}
	next, err := o.next(ctx, rec)
	if err != nil {
		return tool.State{}, err
	}
	return o.execute(ctx, rec, next)
}

// correct rewrites the objects of the record.
func (o *operation) correct(ctx context.Context, rec *record) error {
	all := rec.all()
	if err := objects.LocateAll(all, o.cluster.Mapper(), o.want.ID.Namespace); err != nil {
		return err
	}
	for _, one := range all {
		one.owned = true
	}
	return o.writer().applyAll(ctx, all)
}

// next returns the record of the next revision: the same revision again if it was interrupted or
// failed, otherwise a new one.
func (o *operation) next(ctx context.Context, rec *record) (*record, error) {
	if rec != nil && !rec.broken && rec.Fingerprint == fingerprint(o.want) {
		next := *rec
		next.Status, next.Message = tool.PendingUpgrade, ""
		if rec.Number == 1 {
			next.Status = tool.PendingInstall
		}
		return &next, nil
	}
	contents, err := o.build(ctx)
	if err != nil {
		return nil, err
	}
	next := &record{Status: tool.PendingInstall, revision: revision{
		Number: 1, Package: o.want.Package.Name, Version: o.want.Resolved.Version, Fingerprint: fingerprint(o.want), Objects: contents,
	}}
	if rec != nil {
		next.succeed(rec)
		next.Status = tool.PendingUpgrade
	}
	return next, nil
}

// build renders the objects and locates them.
func (o *operation) build(ctx context.Context) ([]map[string]any, error) {
	contents, err := o.packages.build(ctx, o.cluster.Key().Namespace, o.want)
	if err != nil {
		return nil, err
	}
	r := revision{Objects: contents}
	all := r.all()
	if err := objects.LocateAll(all, o.cluster.Mapper(), o.want.ID.Namespace); err != nil {
		return nil, err
	}
	return contents, o.checkAll(all)
}

// checkAll rejects objects that would overwrite each other or the record.
func (o *operation) checkAll(all []*object) error {
	seen := map[string]bool{}
	for _, one := range all {
		if seen[one.Identity()] {
			return &tool.TerminalError{Err: fmt.Errorf("package contains %s twice", one.Title())}
		}
		seen[one.Identity()] = true
		if one.Resource == secretsResource && one.GetNamespace() == o.want.ID.Namespace && strings.HasPrefix(one.GetName(), recordPrefix) {
			return &tool.TerminalError{Err: fmt.Errorf("%s has a name reserved for installation records", one.Title())}
		}
	}
	return nil
}

// succeed makes a record the successor of another.
func (r *record) succeed(rec *record) {
	r.Number, r.version = rec.Number+1, rec.version
	r.Last = rec.Last
	if rec.Status == tool.Deployed {
		last := rec.revision
		r.Last = &last
	}
	r.Before = slices.Clone(rec.Before)
	for _, old := range rec.all() {
		ref := reference{old.GetAPIVersion(), old.GetKind(), old.GetNamespace(), old.GetName()}
		if !slices.Contains(r.Before, ref) {
			r.Before = append(r.Before, ref)
		}
	}
}

// execute rolls out a revision. It can be repeated from any point.
func (o *operation) execute(ctx context.Context, was, next *record) (tool.State, error) {
	if was == nil || was.Number != next.Number || was.Status != next.Status {
		next.Updated = time.Now().UTC()
		if err := o.open(ctx, next); err != nil {
			return tool.State{}, err
		}
	}
	if err := o.run(ctx, was, next); err != nil {
		err = o.fail(ctx, next, err)
		return next.state(), err
	}
	next.Status, next.Before = tool.Deployed, nil
	err := o.records.write(ctx, next)
	return next.state(), err
}

// open records a pending revision. It creates the namespace if that is missing and wanted.
func (o *operation) open(ctx context.Context, next *record) error {
	err := o.records.write(ctx, next)
	wanted := o.want.Options.Install.CreateNamespace == nil || *o.want.Options.Install.CreateNamespace
	if !apierrors.IsNotFound(err) || !wanted || next.version != "" {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.want.ID.Namespace}}
	_, err = o.cluster.Kubernetes().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return objects.Classify(err)
	}
	return o.records.write(ctx, next)
}

// run applies the objects of the revision and then deletes obsolete ones.
func (o *operation) run(ctx context.Context, was, next *record) error {
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	all := next.all()
	if err := objects.LocateAll(all, o.cluster.Mapper(), o.want.ID.Namespace); err != nil {
		return err
	}
	if was != nil && was.Status == tool.Deployed {
		inherit(all, was.all())
	}
	w := o.writer()
	if err := w.applyAll(ctx, all); err != nil {
		return err
	}
	return o.prune(ctx, next.leftovers(), all)
}

// inherit marks the objects that the previous revision already owns.
func inherit(all, old []*object) {
	known := map[string]bool{}
	for _, o := range old {
		known[o.Identity()] = true
	}
	for _, o := range all {
		o.owned = known[o.Identity()]
	}
}

// fail records the failure of a revision if it is final, and returns cause. After an inconclusive
// failure the revision stays pending, and the next call resumes it.
func (o *operation) fail(ctx context.Context, next *record, cause error) error {
	decided := errors.As(cause, new(*tool.TerminalError)) || errors.Is(cause, context.DeadlineExceeded)
	if ctx.Err() != nil || !decided {
		return cause
	}
	next.Status, next.Message = tool.Failed, cause.Error()
	return errors.Join(cause, o.records.write(ctx, next))
}
