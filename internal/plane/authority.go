package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/pki"
)

// ensureCA loads a CA, and reports whether it created one. A CA that is about to expire, or that is
// not valid yet, is replaced by a new one that signs from then on, while both are trusted.
func (p PKI) ensureCA(name string) (a *pki.Authority, created bool, err error) {
	if err := p.finishReplacement(name); err != nil {
		return nil, false, err
	}
	a, err = pki.LoadAuthority(p.home.certFile(name), p.home.keyFile(name))
	if err == nil && !pki.Due(a.Certs[0], p.now) {
		return a, false, nil
	}
	if err != nil {
		if err := p.home.checkReplaceable(fmt.Sprintf("certificate authority %q", name), err, p.home.certFile(name), p.home.keyFile(name)); err != nil {
			return nil, false, err
		}
	}
	next, err := pki.NewAuthority("drover-"+name, p.now, caLifetime)
	if err != nil {
		return nil, false, err
	}
	if a != nil {
		next.Trust(a.Certs, p.now)
	}
	return next, true, p.replaceCA(name, next)
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

// nextFile holds a new CA and its key while they replace the previous ones.
func (h Home) nextFile(name string) string { return h.path("pki", name+".next") }

// replaceCA replaces certificate and key as one: they are in one file until both are in place.
func (p PKI) replaceCA(name string, a *pki.Authority) error {
	if err := atomicfile.Write(p.home.nextFile(name), append(a.PEM(), a.Key...), 0o600); err != nil {
		return err
	}
	return p.finishReplacement(name)
}

// finishReplacement completes a replacement, also that of a process that was killed.
func (p PKI) finishReplacement(name string) error {
	data, err := os.ReadFile(p.home.nextFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the new certificate authority %q: %w", name, err)
	}
	certs, key := pki.Split(data)
	if _, err := pki.ParseAuthority(certs, key); err != nil {
		return fmt.Errorf("reading the new certificate authority %q: %w", name, err)
	}
	if err := atomicfile.Write(p.home.keyFile(name), key, 0o600); err != nil {
		return err
	}
	if err := atomicfile.Write(p.home.certFile(name), certs, 0o600); err != nil {
		return err
	}
	if err := os.Remove(p.home.nextFile(name)); err != nil {
		return fmt.Errorf("replacing certificate authority %q: %w", name, err)
	}
	return atomicfile.SyncDir(p.home.pkiDir())
}
