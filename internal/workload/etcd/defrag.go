package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// defragTimeout limits the defragmentation of one member. A database of 8 GiB, the largest that
// etcd recommends, takes about two minutes on a disk that writes 100 MB/s.
const defragTimeout = 10 * time.Minute

// Defragmented is what the defragmentation of a member did to its database.
type Defragmented struct {
	Name   string `json:"name"`
	Before int64  `json:"dbSizeBefore"`
	After  int64  `json:"dbSizeAfter"`
}

// Defrag defragments the members one after another, the leader last: a member doesn't respond while
// it is defragmented. It starts with none, or stops before the next one, if a member is unhealthy.
func (e *Etcd) Defrag(ctx context.Context, progress func(Defragmented)) error {
	members, err := e.Members(ctx)
	if err != nil {
		return err
	}
	if err := allHealthy(members); err != nil {
		return fmt.Errorf("defragmenting etcd: %w; nothing was defragmented", err)
	}
	for _, m := range leaderLast(members) {
		if err := e.defragOne(ctx, m, progress); err != nil {
			return fmt.Errorf("defragmenting member %q: %w", m.Name, err)
		}
	}
	return nil
}

// leaderLast returns the members in the order in which they are defragmented.
func leaderLast(members []Member) []Member {
	out := slices.Clone(members)
	slices.SortStableFunc(out, func(a, b Member) int { return rank(a) - rank(b) })
	return out
}

func rank(m Member) int {
	if m.Role == Leader {
		return 1
	}
	return 0
}

// allHealthy returns an error that names the unhealthy members. The alarm for a full database
// doesn't count: defragmentation is what ends it.
func allHealthy(members []Member) error {
	var problems []string
	for _, m := range members {
		if m.Role == "" || m.Health != Healthy && !slices.Contains(m.Alarms, "NOSPACE") {
			problems = append(problems, fmt.Sprintf("member %q is unhealthy: %s", m.Name, m.Health))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return nil
}

func (e *Etcd) defragOne(ctx context.Context, m Member, progress func(Defragmented)) error {
	c, err := e.connect(m.at)
	if err != nil {
		return err
	}
	defer c.Close()
	limited, cancel := context.WithTimeout(ctx, defragTimeout)
	defer cancel()
	if _, err := c.Defragment(limited, m.at.url); err != nil {
		return err
	}
	after, err := e.Members(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(after, func(now Member) bool { return now.id == m.id })
	if i >= 0 {
		progress(Defragmented{m.Name, m.DBSize, after[i].DBSize})
	}
	return allHealthy(after)
}
