package build

import "github.com/drover-dev/drover/internal/model/spec"

// podIAM sets the issuer of service account tokens. Cluster API accepts a flag once, so API servers
// don't accept tokens of a previous issuer.
func (b *builder) podIAM(m *machines) error {
	if config := b.cluster.Spec.PodIAMConfig; config != nil {
		m.apiServer([2]string{spec.IssuerArgument, config.ServiceAccountIssuer})
	}
	return nil
}
