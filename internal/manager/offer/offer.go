// Package offer serves what ships with Drover, charts and signed bundles of packages, to one manager from inside its own process. A manager
// on a cluster needs no registry beside it that way, and none that outlives it.
//
// All of it is made anew at each start, but for the key that bundles are signed with: bundles that were downloaded earlier stay good as long
// as that one stays the same. Start with Open.
package offer

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle/shipped"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

// life is how long the certificate is good: longer than any process lives.
const life = 10 * 365 * 24 * time.Hour

// Options say where to serve, and for whom to sign.
type Options struct {
	// Address is on loopback, host:port.
	Address string
	// KeyFile has the key that bundles are signed with.
	KeyFile string
	Log     *slog.Logger
}

// Offer is a registry that runs.
type Offer struct {
	// Host is how references to the registry begin, CAFile whom to trust for it, and PublicKeyFile what its bundles are signed with.
	Host, CAFile, PublicKeyFile string

	dir      string
	password string
	ca       []byte
	stop     func()
}

// Open serves until the offer is closed. Everything is there when it returns.
func Open(ctx context.Context, o Options) (*Offer, error) {
	dir, err := os.MkdirTemp("", "drover-registry-")
	if err != nil {
		return nil, err
	}
	f := &Offer{
		dir: dir, Host: o.Address, CAFile: filepath.Join(dir, "ca.crt"), PublicKeyFile: filepath.Join(dir, "bundles.pub"),
		password: rand.Text(), stop: func() {},
	}
	if err := f.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("offering what ships with Drover: %w", err), f.Close())
	}
	return f, nil
}

func (f *Offer) open(ctx context.Context, o Options) error {
	key, err := pki.LoadKey(o.KeyFile)
	if err != nil {
		return err
	}
	public, err := pki.PublicPEM(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.PublicKeyFile, public, 0o600); err != nil {
		return err
	}
	if err := f.serve(ctx, o); err != nil {
		return err
	}
	return shipped.Offer(ctx, transfer.Options{Address: f.Host, CA: f.ca, Username: registry.User, Password: f.password}, key)
}

func (f *Offer) serve(ctx context.Context, o Options) error {
	options := registry.Options{
		Dir: filepath.Join(f.dir, "content"), CertFile: filepath.Join(f.dir, "tls.crt"), KeyFile: filepath.Join(f.dir, "tls.key"),
		PasswordFile: filepath.Join(f.dir, "password"), Charts: charts.Files, Log: o.Log,
	}
	if err := f.writeSecrets(options); err != nil {
		return err
	}
	server, err := registry.Open(ctx, options)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return err
	}
	f.Host = l.Addr().String()
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(serving, l); err != nil {
			o.Log.Error("What ships with Drover is no longer offered", "error", err)
		}
	}()
	f.stop = func() {
		cancel()
		<-ended
	}
	return nil
}

func (f *Offer) writeSecrets(o registry.Options) error {
	now := time.Now()
	authority, err := pki.NewAuthority("drover-offer", now, life)
	if err != nil {
		return err
	}
	f.ca = authority.PEM()
	cert, key, err := authority.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "drover-offer"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	})
	if err != nil {
		return err
	}
	for file, data := range map[string][]byte{f.CAFile: f.ca, o.CertFile: cert, o.KeyFile: key, o.PasswordFile: []byte(f.password)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the offer and leaves nothing of it.
func (f *Offer) Close() error {
	f.stop()
	return os.RemoveAll(f.dir)
}
