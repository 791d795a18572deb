package artifact

import (
	"fmt"
	"net/url"
	"os"
)

// TrustRegistry returns Options.Trust for a registry with a CA in a file. An empty file name means
// the CAs of the system.
func TrustRegistry(address, caFile string) (map[string]Access, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("parsing the address %q of the registry: %w", address, err)
	}
	var access Access
	if caFile != "" {
		if access.CA, err = os.ReadFile(caFile); err != nil {
			return nil, fmt.Errorf("reading the CA of the registry: %w", err)
		}
	}
	return map[string]Access{u.Host: access}, nil
}

// trusting adds the default access for the host to a Ref. Settings of the Ref take precedence.
func trusting(trust map[string]Access, ref Ref) Ref {
	base, err := url.Parse(ref.URL)
	if err != nil {
		return ref
	}
	trusted, ok := trust[base.Host]
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
