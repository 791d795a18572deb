package registry

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate is the server's certificate. It is reloaded when its file changes, so that new
// connections get the renewed certificate.
type certificate struct {
	certFile, keyFile string

	mu    sync.Mutex
	last  *tls.Certificate
	since time.Time
}

// get returns the certificate in the files, or the previous one while the files are being replaced.
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
		return nil, fmt.Errorf("loading the registry's certificate: %w", loadErr)
	}
	return c.last, nil
}
