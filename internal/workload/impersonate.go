package workload

import (
	"fmt"

	"k8s.io/client-go/rest"
)

// maxUsers bounds the users that are impersonated on one cluster without creating clients again.
const maxUsers = 256

// As returns a connection whose clients impersonate a user, or this connection if the user is
// empty. It makes no request, and is cached. Watches, kinds, the version and the circuit breaker
// are those of this connection: they show names and states of objects, but no contents.
func (c *Cluster) As(user string) (*Cluster, error) {
	if user == "" {
		return c, nil
	}
	if c.origin != nil {
		return c.origin.As(user)
	}
	if known, ok := c.users.Get(user); ok {
		return known.(*Cluster), nil // see Add below
	}
	as := &Cluster{
		key: c.key, identity: c.identity, breaker: c.breaker, discovery: c.discovery, mapper: c.mapper, watches: c.watches, origin: c,
	}
	as.config = rest.CopyConfig(c.config)
	as.config.Impersonate = rest.ImpersonationConfig{UserName: user}
	if err := as.newClients(); err != nil {
		return nil, fmt.Errorf("impersonating %q on cluster %q: %w", user, c.key, err)
	}
	c.users.Add(user, as)
	return as, nil
}
