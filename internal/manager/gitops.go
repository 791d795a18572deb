package manager

import "github.com/drover-dev/drover/internal/controllers/gitops"

func (o Options) gitOpsOptions() gitops.Options {
	return gitops.Options{Enabled: o.GitOps}
}
