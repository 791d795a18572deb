package etcd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Snapshot is a consistent copy of all data, as etcd sends it: a database followed by its checksum.
type Snapshot struct {
	// Size is that of the database and its checksum, Version that of etcd.
	Size     int64
	Version  string
	Revision int64
	Member   string

	stream pb.Maintenance_SnapshotClient
	first  *pb.SnapshotResponse
	close  func()
}

// ErrDamagedSnapshot means that a snapshot is incomplete or not what etcd sent.
var ErrDamagedSnapshot = errors.New("the snapshot is truncated or damaged")

// Snapshot requests a snapshot from a healthy follower, or the leader if there is none. Close it.
func (e *Etcd) Snapshot(ctx context.Context) (*Snapshot, error) {
	members, err := e.Members(ctx)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(leaderLast(members), func(m Member) bool { return m.Health != Healthy || m.Role == Learner })
	if len(members) == 0 {
		return nil, errors.New("requesting a snapshot from etcd: no member is healthy")
	}
	return e.snapshotOf(ctx, members[0])
}

func (e *Etcd) snapshotOf(ctx context.Context, m Member) (_ *Snapshot, err error) {
	c, err := e.connect(m.at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		cancel()
		_ = c.Close()
	}
	defer func() {
		if err != nil {
			end()
			err = fmt.Errorf("requesting a snapshot from member %q: %w", m.Name, err)
		}
	}()
	stream, err := pb.NewMaintenanceClient(c.ActiveConnection()).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	// The first message announces how much of the database follows; the checksum comes on top.
	size := int64(len(first.Blob)) + int64(first.RemainingBytes) + sha256.Size
	return &Snapshot{Size: size, Version: first.Version, Revision: m.Revision, Member: m.Name, stream: stream, first: first, close: end}, nil
}

// Close ends the stream.
func (s *Snapshot) Close() { s.close() }

// WriteTo writes the snapshot, and verifies its size and its checksum.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	check := NewCheck()
	out := io.MultiWriter(w, check)
	for message, err := s.first, error(nil); ; message, err = s.stream.Recv() {
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return check.size, fmt.Errorf("receiving the snapshot: %w", err)
		}
		if _, err := out.Write(message.Blob); err != nil {
			return check.size, err
		}
		if check.size > s.Size {
			break
		}
	}
	if check.size != s.Size {
		return check.size, fmt.Errorf("%w: received %d of %d bytes", ErrDamagedSnapshot, check.size, s.Size)
	}
	return check.size, check.Verify()
}
