package artifact

import "net/url"

// trusting adds what is needed to get into a place that is trusted. What a Ref says itself goes first.
func (s *Store) trusting(ref Ref) Ref {
	base, err := url.Parse(ref.URL)
	if err != nil {
		return ref
	}
	trusted, ok := s.options.Trust[base.Host]
	if !ok {
		return ref
	}
	if len(ref.Access.CA) == 0 && !ref.Access.SkipTLSVerify {
		ref.Access.CA, ref.Access.SkipTLSVerify = trusted.CA, trusted.SkipTLSVerify
	}
	if ref.Access.anonymous() && base.User == nil {
		ref.Access.Username, ref.Access.Password, ref.Access.DockerConfig = trusted.Username, trusted.Password, trusted.DockerConfig
	}
	return ref
}

func (a *Access) anonymous() bool {
	return a.Username == "" && a.Password == "" && len(a.DockerConfig) == 0
}
