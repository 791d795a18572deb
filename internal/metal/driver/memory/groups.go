package memory

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// groupPrefix is the prefix of the backend's resource groups.
const groupPrefix = "cluster-"

// groups allocates names of resource groups. It reuses the name of a deleted cluster, because the
// backend keeps counters per name forever.
type groups struct {
	made int
	free []string
}

func (g *groups) take() string {
	if last := len(g.free) - 1; last >= 0 {
		name := g.free[last]
		g.free = g.free[:last]
		return name
	}
	g.made++
	return groupPrefix + strconv.Itoa(g.made)
}

// find returns the cluster of a node and creates it if it is new.
func (c *clusters) find(b *bootstrap) *cluster {
	if k, found := c.byID[b.clusterID]; found {
		return k
	}
	k := &cluster{id: b.clusterID, group: c.groups.take(), up: make(chan struct{}), configs: map[string]*tls.Config{}}
	c.byID[k.id] = k
	c.backend.AddResourceGroup(k.group)
	return k
}

// dropEmpty deletes a cluster without members and without waiting workers.
func (c *clusters) dropEmpty(k *cluster) bool {
	if k.nodes > 0 || k.joining > 0 {
		return false
	}
	if c.byID[k.id] == k {
		delete(c.byID, k.id)
		c.backend.DeleteResourceGroup(k.group)
		c.deletions.forget(k.group)
		c.groups.free = append(c.groups.free, k.group)
	}
	return true
}

// groupOf returns the resource group of an API request by its host: the group itself (see serveAPI)
// or an address.
func (c *clusters) groupOf(host string) (string, error) {
	if strings.HasPrefix(host, groupPrefix) {
		return host, nil
	}
	return c.groupAt(host)
}

// groupAt returns the resource group served at an address.
func (c *clusters) groupAt(address string) (string, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f, found := c.fronts[at]
	if !found {
		return "", fmt.Errorf("no cluster is served at %s", address)
	}
	return f.cluster.group, nil
}

// localAddress returns the local address of a connection.
func localAddress(r *http.Request) string {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return a.String()
	}
	return ""
}
