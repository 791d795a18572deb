package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Roles of members.
const (
	Leader   = "leader"
	Follower = "follower"
	Learner  = "learner"
)

// Healthy is the health of a member without problems.
const Healthy = "healthy"

// Member is a member of etcd and its state.
type Member struct {
	// ID is in hexadecimal, as etcd logs it.
	ID      string `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
	// Role is empty if the member doesn't respond.
	Role    string `json:"role,omitempty"`
	Version string `json:"version,omitempty"`
	// DBSize is the size of the database on disk, DBInUse what of it defragmentation keeps.
	DBSize    int64    `json:"dbSize"`
	DBInUse   int64    `json:"dbSizeInUse"`
	RaftIndex uint64   `json:"raftIndex"`
	Revision  int64    `json:"revision"`
	Alarms    []string `json:"alarms,omitempty"`
	// Health is "healthy" or what is wrong.
	Health string `json:"health"`

	id uint64
	at endpoint
}

// Members returns all members, sorted by name. It fails without quorum.
func (e *Etcd) Members(ctx context.Context) ([]Member, error) {
	var list []*pb.Member
	alarms := map[uint64][]string{}
	err := e.eachEndpoint(func(c *clientv3.Client) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		found, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		raised, err := c.AlarmList(ctx)
		if err != nil {
			return err
		}
		for _, a := range raised.Alarms {
			alarms[a.MemberID] = append(alarms[a.MemberID], a.Alarm.String())
		}
		list = found.Members
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the members of etcd: %w", err)
	}
	out := make([]Member, len(list))
	var group sync.WaitGroup
	for i, m := range list {
		group.Go(func() { out[i] = e.examine(ctx, m, alarms[m.ID]) })
	}
	group.Wait()
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// examine asks a member for its state.
func (e *Etcd) examine(ctx context.Context, m *pb.Member, alarms []string) Member {
	out := Member{
		ID: strconv.FormatUint(m.ID, 16), Name: m.Name, Address: strings.Join(m.ClientURLs, ","), Alarms: alarms, id: m.ID,
	}
	at, found := e.endpointOf(m)
	if !found {
		out.Health = "has no running Pod"
		return out
	}
	out.at = at
	if err := e.readStatus(ctx, &out); err != nil {
		out.Health = "doesn't respond: " + err.Error()
	}
	if out.Role != "" && m.IsLearner {
		out.Role = Learner
	}
	return out
}

func (e *Etcd) endpointOf(m *pb.Member) (endpoint, bool) {
	if e.External {
		if len(m.ClientURLs) == 0 {
			return endpoint{}, false
		}
		return endpoint{url: m.ClientURLs[0]}, true
	}
	i := slices.IndexFunc(e.endpoints, func(at endpoint) bool { return at.member == m.Name })
	if i < 0 {
		return endpoint{}, false
	}
	return e.endpoints[i], true
}

func (e *Etcd) readStatus(ctx context.Context, m *Member) error {
	c, err := e.connect(m.at)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := c.Status(ctx, m.at.url)
	if err != nil {
		return err
	}
	if s.Header.MemberId != m.id {
		return errors.New("another member responds at its address")
	}
	m.fill(s)
	return nil
}

func (m *Member) fill(s *clientv3.StatusResponse) {
	m.Version, m.DBSize, m.DBInUse, m.RaftIndex, m.Revision = s.Version, s.DbSize, s.DbSizeInUse, s.RaftIndex, s.Header.Revision
	m.Role, m.Health = Follower, Healthy
	switch s.Leader {
	case 0:
		m.Health = "has no leader"
	case m.id:
		m.Role = Leader
	}
	if len(s.Errors) > 0 {
		m.Health = strings.Join(s.Errors, "; ")
	}
}
