package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/content"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/model/document"
	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

// maxFindings is how many secrets in files a message lists.
const maxFindings = 5

// newEdit returns the function that changes the files.
func (c *Controller) newEdit(ctx context.Context, s *scope) (git.Edit, error) {
	e := &edit{namespace: s.change.Namespace}
	var err error
	if s.change.Spec.Action == droverv1.GitRemove {
		e.cluster, err = c.removed(ctx, s.change)
	} else if e.config, err = content.Read(ctx, c.Client, s.change); err == nil {
		e.cluster = e.config.Cluster.DeepCopy()
	}
	var problems spec.Violations
	if errors.As(err, &problems) {
		return nil, outcomeOf(&contentError{problems})
	}
	if err != nil {
		return nil, err
	}
	if e.path, err = c.pathOf(s.repository.Path, e.cluster); err != nil {
		return nil, outcomeOf(&contentError{err})
	}
	if problem := c.plane().DenyPath(e.path, s.credentials); problem != "" { // A spec names its management cluster.
		return nil, denied(problem)
	}
	return func(files fs.FS) (map[string][]byte, error) {
		changes, err := e.apply(files)
		if err != nil {
			return nil, &contentError{err}
		}
		return changes, nil
	}, nil
}

// pathOf returns the directory of the management cluster of a cluster.
func (c *Controller) pathOf(given string, cluster *anywherev1.Cluster) (string, error) {
	management := cmp.Or(cluster.ManagedBy(), c.ManagementCluster)
	switch {
	case given != "":
		return given, nil
	case management == "":
		return "", fmt.Errorf("locating cluster %q: neither spec.clusterConfigPath of the FluxConfig nor its management cluster is set", cluster.Name)
	default:
		return gitops.DefaultPath(management), nil
	}
}

// removed returns the Cluster to remove. If it doesn't exist any more, only its name is known.
func (c *Controller) removed(ctx context.Context, change *droverv1.GitChange) (*anywherev1.Cluster, error) {
	found := &anywherev1.Cluster{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: change.Namespace, Name: change.Spec.Cluster}, found)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	found.Namespace, found.Name = change.Namespace, change.Spec.Cluster
	found.Spec.Management = ptr.To(false) // The webhook denies the removal of others.
	return found, nil
}

// edit is a change of the files of a cluster.
type edit struct {
	path, namespace string
	cluster         *anywherev1.Cluster
	// config is what to write; nil removes the cluster.
	config *spec.Config
}

// apply returns the files to change. It never touches a cluster of another namespace, and never
// writes a secret.
func (e *edit) apply(files fs.FS) (gitops.Changes, error) {
	at, err := gitops.Detect(files, e.path, e.cluster)
	if err != nil {
		return nil, err
	}
	if err := e.checkNamespace(files, at); err != nil {
		return nil, err
	}
	if e.config == nil {
		return gitops.Remove(files, at)
	}
	changes, err := gitops.Write(files, at, e.config)
	if err != nil {
		return nil, err
	}
	if found := changes.Secrets(); len(found) > 0 {
		lines := make([]string, len(found))
		for i := range found {
			lines[i] = found[i].String()
		}
		return nil, fmt.Errorf("writing cluster %q: the files would contain secrets: %s", e.cluster.Name, text.Clauses(lines, maxFindings))
	}
	return changes, nil
}

// checkNamespace returns an error if the files have a cluster of the name that belongs to another
// namespace. Names are unique in a repository, and the first one has it.
func (e *edit) checkNamespace(files fs.FS, at gitops.Location) error {
	data, err := fs.ReadFile(files, at.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	objects, err := document.Objects(data)
	if err != nil {
		return fmt.Errorf("reading %q: %w", at.File, err)
	}
	if slices.ContainsFunc(objects, e.isForeign) {
		return fmt.Errorf("the repository has a cluster %q of another namespace; choose another name", e.cluster.Name)
	}
	return nil
}

// isForeign reports whether an object, or an item of a List, is the cluster in another namespace.
func (e *edit) isForeign(object map[string]any) bool {
	items, _ := object["items"].([]any)
	for _, item := range items {
		if one, ok := item.(map[string]any); ok && e.isForeign(one) {
			return true
		}
	}
	id := document.IDOf(object, spec.DefaultNamespace)
	return id.Kind == anywherev1.ClusterKind && id.Name == e.cluster.Name && id.Namespace != e.namespace
}
