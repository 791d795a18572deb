package schedule

import (
	"strings"
	"testing"
	"time"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// FuzzSpec finds schedules that can't be checked, or that are accepted but never become due, and
// messages that repeat what was given as a recipient, which may be a private key.
func FuzzSpec(f *testing.F) {
	const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	f.Add("0 2 * * *", "/var/backups", recipient)
	f.Add("@every 6h", "s3://bucket/a", recipient)
	f.Add("TZ=Europe/Rome */7 1-3 * 2 MON", "oci://registry.example.com/a", "AGE-SECRET-KEY-1QQQQ")
	f.Add("@every 999999999999h", "relative", "")
	f.Fuzz(func(t *testing.T, schedule, location, given string) {
		s := &droverv1.EtcdSnapshotSchedule{Spec: droverv1.EtcdSnapshotScheduleSpec{Schedule: schedule, Location: location, Recipients: []string{given}}}
		when, recipients, err := read(s)
		if err != nil {
			if len(given) > 20 && strings.Contains(err.Error(), given) && !strings.Contains(schedule+location, given) {
				t.Errorf("the message has the recipient: %v", err)
			}
			return
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := when.Next(now); len(recipients) != 1 || !next.After(now) {
			t.Errorf("%q is next due at %s", schedule, next)
		}
	})
}
