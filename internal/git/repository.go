package git

import (
	"context"
	"errors"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// Limits bound what a repository may take. A zero is replaced by its default.
type Limits struct {
	// Fetch is the size of all files of a commit, in bytes; 128 MiB by default. The repository's
	// history doesn't count.
	Fetch int64
	// File is the size of a file that is read or written, in bytes; 8 MiB by default.
	File int64
	// Files is the number of files of a commit; 50,000 by default.
	Files int
	// Timeout bounds each exchange with the server; two minutes by default.
	Timeout time.Duration
}

// Options configure a Repository. All have defaults.
type Options struct {
	// AuthorName and AuthorEmail appear in commits.
	AuthorName, AuthorEmail string
	Limits                  Limits
	// Clock tells the time of commits and paces attempts.
	Clock clock.Clock
	// Attempts is how often Update tries to push, 10 by default.
	Attempts int
}

const (
	defaultFetch    = 128 << 20
	defaultFile     = 8 << 20
	defaultFiles    = 50_000
	defaultTimeout  = 2 * time.Minute
	defaultAttempts = 10

	defaultAuthor = "Drover"
	defaultEmail  = "drover@localhost"

	// packOverhead is how much larger than its objects a pack may be, if they can't be compressed.
	packOverhead = 2 << 20
	// protocolOverhead is what a server sends besides objects: references and messages.
	protocolOverhead = packOverhead + 4<<20
)

func (o *Options) setDefaults() {
	o.AuthorName, o.AuthorEmail = orDefault(o.AuthorName, defaultAuthor), orDefault(o.AuthorEmail, defaultEmail)
	setDefault(&o.Limits.Fetch, defaultFetch)
	setDefault(&o.Limits.File, defaultFile)
	setDefault(&o.Limits.Files, defaultFiles)
	setDefault(&o.Limits.Timeout, defaultTimeout)
	setDefault(&o.Attempts, defaultAttempts)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
}

func setDefault[T int | int64 | time.Duration](value *T, fallback T) {
	if *value <= 0 {
		*value = fallback
	}
}

// Repository is a branch of a remote repository. It keeps nothing between calls and may be used
// concurrently.
type Repository struct {
	remote  Remote
	options Options
	wire    wire
	sign    signer
}

// New returns a Repository without connecting to it.
func New(remote Remote, o Options) (*Repository, error) {
	at, err := remote.parse()
	if err != nil {
		return nil, err
	}
	o.setDefaults()
	r := &Repository{remote: remote, options: o}
	if r.sign, err = newSigner(remote.Credentials); err != nil {
		return nil, err
	}
	if r.wire, err = r.connect(at); err != nil {
		return nil, err
	}
	return r, nil
}

// String returns the URL and the branch.
func (r *Repository) String() string { return r.remote.URL + "@" + r.remote.Branch }

func (r *Repository) limits() bounded.Limits {
	l := r.options.Limits
	return bounded.Limits{Peer: "Git server", Body: l.Fetch + protocolOverhead, Timeout: l.Timeout}
}

// references is what a server advertises about the branch.
type references struct {
	// tip is zero if the branch doesn't exist.
	tip plumbing.Hash
	// start is where a new branch starts: the tip of the default branch, zero if there is none.
	start plumbing.Hash
	// empty is set if there is no reference at all.
	empty bool
}

// TipID returns the ID of the branch's newest commit without fetching it, or "" if the branch
// doesn't exist.
func (r *Repository) TipID(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, r.options.Limits.Timeout)
	defer cancel()
	tip, err := r.tipID(limited)
	if err != nil {
		return "", r.explain(ctx, err)
	}
	return tip, nil
}

func (r *Repository) tipID(ctx context.Context) (string, error) {
	session, err := r.wire.upload(ctx)
	if err != nil {
		return "", err
	}
	defer session.Close()
	refs, _, err := r.discover(ctx, session)
	return commitID(refs.tip), err
}

// discover reads the references of a session. The second result is nil for an empty repository.
func (r *Repository) discover(ctx context.Context, s transport.Session) (references, *packp.AdvRefs, error) {
	all, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return references{empty: true}, nil, nil
	}
	if err != nil {
		return references{}, nil, err
	}
	refs := references{tip: all.References[r.remote.reference().String()], empty: len(all.References) == 0}
	if all.Head != nil {
		refs.start = *all.Head
	}
	return refs, all, nil
}

// commitID returns "" for the zero hash.
func commitID(h plumbing.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}
