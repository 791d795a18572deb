package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/pki"
)

// ensureCA loads a CA, and reports whether its certificate is a new one. A CA that is about to
// expire, or that is not valid yet, gets another certificate for the same key, while the earlier
// ones are trusted: kubeconfigs of users and other machines contain those.
func (p PKI) ensureCA(name string) (a *pki.Authority, renewed bool, err error) {
	a, err = pki.LoadAuthority(p.home.certFile(name), p.home.keyFile(name))
	if err != nil {
		return p.createCA(name, err)
	}
	if !pki.Due(a.Certs[0], p.now) {
		return a, false, nil
	}
	if a, err = a.Renew(p.now, caLifetime); err != nil {
		return nil, false, err
	}
	return a, true, atomicfile.Write(p.home.certFile(name), a.PEM(), 0o600)
}

// createCA creates the CA of a new home, after loading it failed.
func (p PKI) createCA(name string, cause error) (*pki.Authority, bool, error) {
	if err := p.home.checkReplaceable(fmt.Sprintf("certificate authority %q", name), cause, p.home.certFile(name), p.home.keyFile(name)); err != nil {
		return nil, false, err
	}
	a, err := pki.NewAuthority("drover-"+name, p.now, caLifetime)
	if err != nil {
		return nil, false, err
	}
	return a, true, p.writePair(name, a.PEM(), a.Key)
}

// checkReplaceable returns an error unless one of the files is absent from a home without data.
// What the data was written with may be unreadable only for a moment, and replacing it would lock
// out every client, or make the data useless.
func (h Home) checkReplaceable(what string, cause error, files ...string) error {
	absent := false
	for _, file := range files {
		_, err := os.Lstat(file)
		absent = absent || errors.Is(err, fs.ErrNotExist)
	}
	switch {
	case !absent:
		return fmt.Errorf("reading %s: %w: fix or restore the file, or restore a backup into another --home", what, cause)
	case h.used():
		return fmt.Errorf("%s is missing, but this home has data that requires it: %w: put the file back, or restore a backup into another --home", what, cause)
	}
	return nil
}

// used reports whether a home has data, unless that can be ruled out.
func (h Home) used() bool {
	_, err := os.Lstat(h.etcdMember())
	return !errors.Is(err, fs.ErrNotExist)
}
