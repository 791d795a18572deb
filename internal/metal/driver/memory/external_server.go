package memory

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// memberServer is what one member of a simulated etcd answers.
type memberServer struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer

	externals *externals
	machine   *etcdMachine
}

// lock returns the member of the server. The error is that of a member without quorum.
func (s *memberServer) lock() (*pb.Member, func(), error) {
	e, x := s.externals, s.machine.etcd
	e.mu.Lock()
	i := slices.IndexFunc(x.members, func(m *pb.Member) bool { return m.Name == s.machine.name })
	voters, up := 0, 0
	for _, m := range x.members {
		if m.IsLearner {
			continue
		}
		voters++
		if e.reachable(x, m) {
			up++
		}
	}
	switch {
	case i < 0:
		return nil, e.mu.Unlock, rpctypes.ErrGRPCStopped
	case up <= voters/2:
		return x.members[i], e.mu.Unlock, rpctypes.ErrGRPCNoLeader
	}
	x.elect(func(m *pb.Member) bool { return e.reachable(x, m) })
	return x.members[i], e.mu.Unlock, nil
}

// elect elects a leader if there is none that is reachable.
func (x *external) elect(reachable func(*pb.Member) bool) {
	fit := func(m *pb.Member) bool { return !m.IsLearner && reachable(m) }
	if slices.ContainsFunc(x.members, func(m *pb.Member) bool { return m.ID == x.leader && fit(m) }) {
		return
	}
	x.leader = 0
	if i := slices.IndexFunc(x.members, fit); i >= 0 {
		x.leader = x.members[i].ID
	}
}

// copies returns the members, which change while an answer is sent.
func (x *external) copies() []*pb.Member {
	var out []*pb.Member
	for _, m := range x.members {
		c := *m
		out = append(out, &c)
	}
	return out
}

func header(m *pb.Member) *pb.ResponseHeader { return &pb.ResponseHeader{ClusterId: 1, MemberId: m.ID} }

// MemberList implements pb.ClusterServer.
func (s *memberServer) MemberList(_ context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	if m == nil || err != nil && r.Linearizable {
		return nil, err
	}
	return &pb.MemberListResponse{Header: header(m), Members: s.machine.etcd.copies()}, nil
}

// MemberAdd implements pb.ClusterServer.
func (s *memberServer) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	x := s.machine.etcd
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(x.members, func(o *pb.Member) bool { return o.PeerURLs[0] == r.PeerURLs[0] }):
		return nil, rpctypes.ErrGRPCPeerURLExist
	case r.IsLearner && slices.ContainsFunc(x.members, func(o *pb.Member) bool { return o.IsLearner }):
		return nil, rpctypes.ErrGRPCTooManyLearners
	}
	added := x.add(r.PeerURLs[0])
	added.IsLearner = r.IsLearner
	return &pb.MemberAddResponse{Header: header(m), Member: x.copies()[len(x.members)-1], Members: x.copies()}, nil
}

// MemberRemove implements pb.ClusterServer.
func (s *memberServer) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	x := s.machine.etcd
	i := slices.IndexFunc(x.members, func(o *pb.Member) bool { return o.ID == r.ID })
	switch {
	case err != nil:
		return nil, err
	case i < 0:
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	x.members = slices.Delete(slices.Clone(x.members), i, i+1)
	return &pb.MemberRemoveResponse{Header: header(m), Members: x.copies()}, nil
}

// MemberUpdate implements pb.ClusterServer.
func (s *memberServer) MemberUpdate(_ context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	x := s.machine.etcd
	i := slices.IndexFunc(x.members, func(o *pb.Member) bool { return o.ID == r.ID })
	switch {
	case err != nil:
		return nil, err
	case i < 0:
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	x.members[i].PeerURLs = r.PeerURLs
	return &pb.MemberUpdateResponse{Header: header(m), Members: x.copies()}, nil
}

// MemberPromote implements pb.ClusterServer.
func (s *memberServer) MemberPromote(_ context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	x := s.machine.etcd
	i := slices.IndexFunc(x.members, func(o *pb.Member) bool { return o.ID == r.ID })
	switch {
	case err != nil:
		return nil, err
	case i < 0:
		return nil, rpctypes.ErrGRPCMemberNotFound
	case !x.members[i].IsLearner:
		return nil, rpctypes.ErrGRPCMemberNotLearner
	case !s.externals.reachable(x, x.members[i]):
		return nil, rpctypes.ErrGRPCLearnerNotReady
	}
	x.members[i].IsLearner = false
	return &pb.MemberPromoteResponse{Header: header(m), Members: x.copies()}, nil
}

// Status implements pb.MaintenanceServer.
func (s *memberServer) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	if m == nil {
		return nil, err
	}
	out := &pb.StatusResponse{Header: header(m), Version: "3.6.8", IsLearner: m.IsLearner, Leader: s.machine.etcd.leader}
	if err != nil {
		out.Leader, out.Errors = 0, []string{err.Error()}
	}
	return out, nil
}

// MoveLeader implements pb.MaintenanceServer.
func (s *memberServer) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	x := s.machine.etcd
	switch {
	case err != nil:
		return nil, err
	case x.leader != m.ID:
		return nil, rpctypes.ErrGRPCNotLeader
	}
	x.leader = r.TargetID
	return &pb.MoveLeaderResponse{Header: header(m)}, nil
}

// Alarm implements pb.MaintenanceServer.
func (s *memberServer) Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	m, unlock, err := s.lock()
	defer unlock()
	if err != nil {
		return nil, err
	}
	return &pb.AlarmResponse{Header: header(m)}, nil
}
