package helm

import (
	"context"
	"slices"
	"time"

	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// remove uninstalls a release. After an interruption it continues with what is left. The records go
// last.
func (o *operation) remove(ctx context.Context, h history) (tool.State, error) {
	if len(h) == 0 {
		return o.removeUnseen(ctx)
	}
	s, err := o.observe(ctx, h)
	if err != nil {
		return tool.State{}, err
	}
	var options addonsv1.HelmUninstallOptions
	if o.want.Options.Uninstall != nil {
		options = *o.want.Options.Uninstall
	}
	if s.newest == nil || s.newest.status() != tool.Uninstalled {
		if err := o.uninstall(ctx, s, options); err != nil {
			return tool.State{}, err
		}
	}
	if options.KeepHistory && s.newest != nil {
		return s.newest.state(), nil
	}
	for _, e := range slices.Backward(h) {
		if err := o.records.remove(ctx, e); err != nil {
			return tool.State{}, err
		}
	}
	return tool.State{}, nil
}

// removeUnseen lists the records before it concludes that there is no release, because the watch
// may be behind.
func (o *operation) removeUnseen(ctx context.Context) (tool.State, error) {
	h, err := o.records.listed(ctx)
	if err != nil || len(h) == 0 {
		return tool.State{}, err
	}
	return o.remove(ctx, h)
}

func (o *operation) uninstall(ctx context.Context, s *situation, options addonsv1.HelmUninstallOptions) error {
	if s.newest != nil && s.newest.status() != tool.Uninstalling {
		s.newest.SetStatus(releasecommon.StatusUninstalling, "Deletion in progress")
		s.newest.Info.Deleted = time.Now()
		if err := o.records.update(ctx, s.newest); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout())
	defer cancel()
	if err := o.removeObjects(limited, s); err != nil {
		return err
	}
	if s.newest == nil || !options.KeepHistory {
		return nil
	}
	if err := o.supersede(ctx, s, s.newest.Version); err != nil {
		return err
	}
	description := options.Description
	if description == "" {
		description = "Uninstallation complete"
	}
	s.newest.SetStatus(releasecommon.StatusUninstalled, description)
	return o.records.update(ctx, s.newest)
}

// removeObjects deletes the objects of all readable records. If none is readable, it renders what
// is wanted to find them.
func (o *operation) removeObjects(ctx context.Context, s *situation) error {
	all := s.records()
	if len(all) == 0 {
		c, err := o.prepare(ctx, &situation{}, step{revision: 1})
		if err != nil {
			return err
		}
		all = []*record{c.record}
	}
	hooks := all[len(all)-1]
	if s.newest != nil {
		hooks = s.newest
	}
	old, err := o.old(&situation{left: all})
	if err != nil {
		return err
	}
	if err := o.hooks(ctx, hooks, releasev1.HookPreDelete); err != nil {
		return err
	}
	w := o.writer()
	if err := w.removeAll(ctx, obsolete(old, nil), w.uninstall); err != nil {
		return err
	}
	return o.hooks(ctx, hooks, releasev1.HookPostDelete)
}
