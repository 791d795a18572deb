package manager

import (
	"fmt"
	"net/url"
	"os"

	"github.com/drover-dev/drover/internal/artifact"
)

// trust is how to get into the registry that add-ons need no settings for.
func (o Options) trust() (map[string]artifact.Access, error) {
	if o.RegistryURL == "" {
		return nil, nil
	}
	u, err := url.Parse(o.RegistryURL)
	if err != nil {
		return nil, fmt.Errorf("--registry-url %q: %w", o.RegistryURL, err)
	}
	var access artifact.Access
	if o.RegistryCA != "" {
		if access.CA, err = os.ReadFile(o.RegistryCA); err != nil {
			return nil, fmt.Errorf("reading --registry-ca: %w", err)
		}
	}
	return map[string]artifact.Access{u.Host: access}, nil
}
