// Package schedule decides when a backup is due, makes it, and deletes the ones that are too old.
// The embedded plane and the manager share it; each owns its own timer. It knows neither what a
// backup contains nor where it is kept. Start with Job.
package schedule

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// Limits and defaults of schedules.
const (
	DefaultEvery = time.Hour
	DefaultKeep  = 48
	// MinEvery keeps a mistyped interval from filling a disk.
	MinEvery = time.Minute
	// retry is how long a failed backup waits, unless the next is due earlier.
	retry = 5 * time.Minute
)

// Schedule says how often backups are made and how many are kept.
type Schedule struct {
	// Every is the interval; 0 makes none.
	Every time.Duration `json:"every"`
	Keep  int           `json:"keep"`
}

// Off reports whether no backups are made.
func (s Schedule) Off() bool { return s.Every == 0 }

// Check rejects a schedule that can't be meant.
func (s Schedule) Check() error {
	switch {
	case s.Every < 0 || s.Every > 0 && s.Every < MinEvery:
		return fmt.Errorf("the interval of backups is %s: use at least %s, or 0 for none", s.Every, MinEvery)
	case s.Keep < 1:
		return fmt.Errorf("the number of backups to keep is %d: use at least 1", s.Keep)
	}
	return nil
}

// Next returns when the next backup is due after the newest one, which is zero if there is none. A
// backup from the future, of a clock that was ahead, doesn't count.
func (s Schedule) Next(newest, now time.Time) time.Time {
	if newest.IsZero() || newest.After(now) {
		return now
	}
	return newest.Add(s.Every)
}

// Status is what became of the backups.
type Status struct {
	// Last is the newest backup; zero without any.
	Last storage.Entry `json:"last,omitzero"`
	// Kept is the number of backups.
	Kept int `json:"kept"`
	// Failure is why the latest attempt failed; empty if it succeeded.
	Failure string `json:"failure,omitempty"`
	// Tried is when that was.
	Tried time.Time `json:"tried,omitzero"`
}

// Job makes the backups of one plane.
type Job struct {
	Schedule
	// Now makes a backup whatever the storage has.
	Now     bool
	Storage storage.Storage
	// Fill writes a backup.
	Fill func(ctx context.Context, at time.Time, w io.Writer) error
}

// Run makes a backup if one is due, and deletes old ones. It returns when to call it again, also
// after an error.
func (j Job) Run(ctx context.Context, now time.Time) (Status, time.Time, error) {
	status, err := j.make(ctx, now)
	status.Tried = now
	if err != nil {
		status.Failure = err.Error()
		return status, now.Add(min(retry, j.Every)), err
	}
	return status, j.Next(status.Last.Time(), now), nil
}

func (j Job) make(ctx context.Context, now time.Time) (Status, error) {
	all, err := j.Storage.List(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("listing backups: %w", err)
	}
	status := newest(all)
	if !j.Now && j.Next(status.Last.Time(), now).After(now) {
		return status, nil
	}
	entry, err := j.Storage.Put(ctx, storage.Name(now), func(w io.Writer) error { return j.Fill(ctx, now, w) })
	if err != nil {
		return status, fmt.Errorf("saving a backup: %w", err)
	}
	status.Last, status.Kept = entry, status.Kept+1
	// Only after a new one is complete: a failure never costs an old one.
	deleted, err := storage.Prune(ctx, j.Storage, j.Keep)
	status.Kept -= len(deleted)
	return status, err
}

// newest returns the status of a storage.
func newest(all []storage.Entry) Status {
	status := Status{Kept: len(all)}
	if len(all) > 0 {
		status.Last = storage.Newest(all)[0]
	}
	return status
}

// Observe returns the status of a storage without making a backup.
func Observe(ctx context.Context, s storage.Storage) (Status, error) {
	all, err := s.List(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("listing backups: %w", err)
	}
	return newest(all), nil
}
