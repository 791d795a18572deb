package schedule

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/backup/storage"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestNextBackupFollowsTheNewest(t *testing.T) {
	s := Schedule{Every: time.Hour, Keep: 3}
	for name, tt := range map[string]struct{ newest, want time.Time }{
		"no backup yet":            {time.Time{}, noon},
		"the newest is old":        {noon.Add(-3 * time.Hour), noon.Add(-2 * time.Hour)},
		"the newest is recent":     {noon.Add(-10 * time.Minute), noon.Add(50 * time.Minute)},
		"the newest is right now":  {noon, noon.Add(time.Hour)},
		"the newest is in advance": {noon.Add(24 * time.Hour), noon},
	} {
		if got := s.Next(tt.newest, noon); !got.Equal(tt.want) {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestSchedulesAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		schedule Schedule
		want     string
	}{
		"hourly":         {Schedule{time.Hour, 1}, ""},
		"off":            {Schedule{0, 1}, ""},
		"too often":      {Schedule{time.Second, 1}, "at least 1m0s"},
		"negative":       {Schedule{-time.Hour, 1}, "at least 1m0s"},
		"nothing's kept": {Schedule{time.Hour, 0}, "at least 1"},
	} {
		err := tt.schedule.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func names(t *testing.T, s storage.Storage) []string {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range storage.Newest(all) {
		out = append(out, e.Name)
	}
	return out
}

func TestJobKeepsTheNewest(t *testing.T) {
	j := Job{Schedule: Schedule{time.Hour, 2}, Storage: storage.Directory{Path: t.TempDir()}, Fill: func(_ context.Context, at time.Time, w io.Writer) error {
		_, err := io.WriteString(w, at.String())
		return err
	}}
	now := noon
	for range 3 {
		status, next, err := j.Run(t.Context(), now)
		if err != nil || status.Last.Name != storage.Name(now) || !next.Equal(now.Add(time.Hour)) || status.Failure != "" {
			t.Fatalf("at %s: %+v, next %s: %v", now, status, next, err)
		}
		now = next
	}
	want := []string{"20260501T140000Z", "20260501T130000Z"}
	if diff := cmp.Diff(want, names(t, j.Storage)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}

	t.Log("a restart before the next one is due makes none")
	status, next, err := j.Run(t.Context(), noon.Add(130*time.Minute))
	if err != nil || status.Last.Name != want[0] || status.Kept != 2 || !next.Equal(now) {
		t.Errorf("%+v, next %s: %v", status, next, err)
	}
	if diff := cmp.Diff(want, names(t, j.Storage)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestFailedBackupCostsNoOldOne(t *testing.T) {
	broken := errors.New("broken")
	var fail error
	j := Job{Schedule: Schedule{time.Hour, 1}, Storage: storage.Directory{Path: t.TempDir()}, Fill: func(context.Context, time.Time, io.Writer) error { return fail }}
	if _, _, err := j.Run(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	fail = broken
	now := noon.Add(2 * time.Hour)
	status, next, err := j.Run(t.Context(), now)
	if !errors.Is(err, broken) || !strings.Contains(status.Failure, "broken") || !next.Equal(now.Add(retry)) {
		t.Errorf("%+v, next %s: %v", status, next, err)
	}
	if got := names(t, j.Storage); len(got) != 1 || got[0] != storage.Name(noon) || status.Last.Name != got[0] {
		t.Errorf("kept %v, status %+v", got, status)
	}
}
