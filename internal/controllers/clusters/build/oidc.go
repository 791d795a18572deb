package build

import "slices"

// oidc configures the OIDC issuer of API servers. Validation allows one.
func (b *builder) oidc(m *machines) error {
	for _, ref := range b.cluster.Spec.IdentityProviderRefs {
		config, ok := b.Config.OIDC[ref.Name]
		if !ok {
			continue
		}
		s := config.Spec
		m.apiServer(
			[2]string{"oidc-issuer-url", s.IssuerURL},
			[2]string{"oidc-client-id", s.ClientID},
			[2]string{"oidc-username-claim", s.UsernameClaim},
			[2]string{"oidc-username-prefix", s.UsernamePrefix},
			[2]string{"oidc-groups-claim", s.GroupsClaim},
			[2]string{"oidc-groups-prefix", s.GroupsPrefix},
		)
		for _, claim := range slices.Clone(s.RequiredClaims) {
			m.apiServer([2]string{"oidc-required-claim", claim.Claim + "=" + claim.Value})
		}
	}
	return nil
}
