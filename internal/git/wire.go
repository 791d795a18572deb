package git

import (
	"bytes"
	"context"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// wire opens sessions with the server of one repository.
type wire interface {
	// upload opens a session that reads references and objects.
	upload(ctx context.Context) (transport.UploadPackSession, error)
	// receive opens a session that changes a reference.
	receive(ctx context.Context) (transport.ReceivePackSession, error)
}

func (r *Repository) connect(at address) (wire, error) {
	if at.scheme == schemeSSH {
		return newSSHWire(at, r.remote.Credentials, r.limits())
	}
	return newHTTPWire(at, r.remote.Credentials, r.limits())
}

// head keeps the first bytes of what is written to it. It never fails, so that a talkative server
// doesn't end its session.
type head struct {
	bytes.Buffer

	max int
}

func (h *head) Write(p []byte) (int, error) {
	if room := h.max - h.Len(); room > 0 {
		_, _ = h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
