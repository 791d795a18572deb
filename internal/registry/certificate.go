package registry

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate is that of the server. It is read anew when its file changes, so that whoever connects next sees the renewed one.
type certificate struct {
	certFile, keyFile string

	mu    sync.Mutex
	last  *tls.Certificate
	since time.Time
}

// get returns the certificate in the files. While these are being replaced, the one before is as good.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err == nil && c.last != nil && info.ModTime().Equal(c.since) {
		return c.last, nil
	}
	loaded, loadErr := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	switch {
	case err == nil && loadErr == nil:
		c.last, c.since = &loaded, info.ModTime()
	case c.last == nil:
		return nil, fmt.Errorf("loading the certificate of the registry: %w", loadErr)
	}
	return c.last, nil
}
