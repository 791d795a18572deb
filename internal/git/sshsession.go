package git

import (
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
)

// sshSession is one run of git-upload-pack or git-receive-pack on an SSH server. It implements the
// sessions of go-git, whose contexts it doesn't need: the one that opened it closes the connection.
type sshSession struct {
	client *ssh.Client
	stop   func() bool
	// receives is set for git-receive-pack, which may have no references.
	receives bool

	session *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  head
	// requested is set after the first request.
	requested bool
}

func (s *sshSession) start(command string) (err error) {
	if s.session, err = s.client.NewSession(); err != nil {
		return err
	}
	if s.stdin, err = s.session.StdinPipe(); err != nil {
		return err
	}
	if s.stdout, err = s.session.StdoutPipe(); err != nil {
		return err
	}
	s.session.Stderr = &s.stderr
	return s.session.Start(command)
}

// AdvertisedReferences implements transport.Session.
func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext implements transport.Session.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.stdout)
	switch {
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, s.exit()
	case err != nil && !errors.Is(err, packp.ErrEmptyAdvRefs):
		return nil, err
	case refs.IsEmpty() && !s.receives:
		return nil, transport.ErrEmptyRemoteRepository
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// exit explains why the server said nothing. A program that failed by itself printed why.
func (s *sshSession) exit() error {
	err := s.session.Wait()
	if _, failed := errors.AsType[*ssh.ExitError](err); failed || err == nil {
		return &serverError{message: s.stderr.String(), cause: errNoRepository}
	}
	return err
}

// UploadPack implements transport.UploadPackSession.
func (s *sshSession) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.requested = true
	if err := req.UploadRequest.Encode(s.stdin); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(s.stdin, true); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(s.stdin).EncodeString("done\n"); err != nil {
		return nil, err
	}
	response := packp.NewUploadPackResponse(req)
	if err := response.Decode(io.NopCloser(s.stdout)); err != nil {
		return nil, err
	}
	return response, nil
}

// ReceivePack implements transport.ReceivePackSession. It waits for the end of the server's
// program, which runs hooks after the report: they would be killed with the connection.
func (s *sshSession) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.requested = true
	if err := req.Encode(s.stdin); err != nil {
		return nil, err
	}
	if err := s.stdin.Close(); err != nil {
		return nil, err
	}
	report := packp.NewReportStatus()
	if err := report.Decode(demux(req.Capabilities, s.stdout, req.Progress)); err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, s.stdout)
	err := report.Error()
	return report, err
}

// Close implements transport.Session. A session without a request ends with an empty one.
func (s *sshSession) Close() error {
	if !s.requested && s.stdin != nil {
		_ = pktline.NewEncoder(s.stdin).Flush()
	}
	s.stop()
	return s.client.Close()
}
