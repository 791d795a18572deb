package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// dialTimeout bounds connecting, callTimeout one request.
	dialTimeout = 2 * time.Second
	callTimeout = 3 * time.Second
)

// Found is a member as etcd lists it.
type Found struct {
	ID      uint64
	Name    string
	PeerURL string
	Learner bool
}

// State is what a member says about itself.
type State struct {
	ID, Leader uint64
	Learner    bool
	// Problem is why it is unhealthy, or "".
	Problem string
}

// Dialer connects to etcd.
type Dialer interface {
	Dial(urls []string, config *tls.Config) (Peer, error)
}

// Peer is a connection to some members.
type Peer interface {
	// Members returns all members, if a majority of them agrees.
	Members(ctx context.Context) ([]Found, error)
	// State asks the member at a URL.
	State(ctx context.Context, url string) (State, error)
	// Change changes the membership.
	Change(ctx context.Context, change Change) error
	Close() error
}

// Change is one change of the membership. One of Add, Promote, Remove, Update and Lead is set.
type Change struct {
	// Add is the peer URL of a new learner.
	Add string
	// Promote, Remove and Update are members; Peer is the new peer URL of the latter.
	Promote, Remove, Update uint64
	Peer                    string
	// Lead is the member that leads from now on, From the URL of the one that leads now.
	Lead uint64
	From string
}

// Client connects to real members.
type Client struct{}

// Dial implements Dialer.
func (Client) Dial(urls []string, config *tls.Config) (Peer, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: urls, TLS: config, DialTimeout: dialTimeout, Logger: zap.NewNop(), MaxCallRecvMsgSize: 4 << 20,
	})
	if err != nil {
		return nil, err
	}
	return &peer{client: c, config: config}, nil
}

type peer struct {
	client *clientv3.Client
	config *tls.Config
}

// Close implements Peer.
func (p *peer) Close() error { return p.client.Close() }

// Members implements Peer.
func (p *peer) Members(ctx context.Context) ([]Found, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := p.client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	var out []Found
	for _, m := range list.Members {
		found := Found{ID: m.ID, Name: m.Name, Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			found.PeerURL = m.PeerURLs[0]
		}
		out = append(out, found)
	}
	return out, nil
}

// State implements Peer.
func (p *peer) State(ctx context.Context, url string) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := p.client.Status(ctx, url)
	if err != nil {
		return State{}, err
	}
	out := State{ID: s.Header.MemberId, Leader: s.Leader, Learner: s.IsLearner}
	if len(s.Errors) > 0 {
		out.Problem = s.Errors[0]
	}
	return out, nil
}

var errNoChange = errors.New("no change requested")

// Change implements Peer.
func (p *peer) Change(ctx context.Context, change Change) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	switch {
	case change.Add != "":
		_, err = p.client.MemberAddAsLearner(ctx, []string{change.Add})
	case change.Promote != 0:
		_, err = p.client.MemberPromote(ctx, change.Promote)
	case change.Remove != 0:
		_, err = p.client.MemberRemove(ctx, change.Remove)
	case change.Update != 0:
		_, err = p.client.MemberUpdate(ctx, change.Update, []string{change.Peer})
	case change.Lead != 0:
		err = p.lead(ctx, change)
	default:
		err = errNoChange
	}
	return err
}

// lead asks the leader itself to hand over: others refuse.
func (p *peer) lead(ctx context.Context, change Change) error {
	leader, err := Client{}.Dial([]string{change.From}, p.config)
	if err != nil {
		return err
	}
	defer leader.Close()
	_, err = leader.(*peer).client.MoveLeader(ctx, change.Lead) // Dial returns no other type
	return err
}
