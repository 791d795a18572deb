// Package offer runs a registry inside the manager's process, with the charts and signed bundles
// that ship with Drover, so that a manager on a cluster requires no other registry.
//
// Everything except the signing key is created again at each start. Downloaded bundles stay valid
// as long as the key stays the same. Start with Open.
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

// life is the lifetime of the certificate, longer than that of any process.
const life = 10 * 365 * 24 * time.Hour

// Options configure an Offer.
type Options struct {
	// Address is a loopback address, host:port.
	Address string
	// KeyFile contains the key that signs bundles.
	KeyFile string
	Log     *slog.Logger
}

// Offer is a running registry.
type Offer struct {
	// Host is the host:port of the registry, CAFile its CA, and PublicKeyFile the key that verifies
	// its bundles.
	Host, CAFile, PublicKeyFile string

	dir      string
	password string
	ca       []byte
	stop     func()
}

// Open starts the registry with all charts and bundles. It runs until Close.
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
		return nil, errors.Join(fmt.Errorf("starting the registry of shipped charts: %w", err), f.Close())
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
	return shipped.PublishAll(ctx, transfer.Options{Address: f.Host, CA: f.ca, Username: registry.User, Password: f.password}, key)
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
			o.Log.Error("Registry of shipped charts stopped", "error", err)
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

// Close stops the registry and deletes its directory.
func (f *Offer) Close() error {
	f.stop()
	return os.RemoveAll(f.dir)
}
