package settings

import (
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

func recipient(t *testing.T) string {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity.Recipient().String()
}

func TestSettingsSurviveTheSecret(t *testing.T) {
	want := Settings{
		Schedule: schedule.Schedule{Every: 6 * time.Hour, Keep: 9}, Location: "oci://registry.example.com/backups",
		Recipients: []string{recipient(t), recipient(t)}, Username: "u", Password: "p", CA: "-----BEGIN",
	}
	got, err := Parse(want.Data())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		data map[string]string
		want string
	}{
		"the least":       {map[string]string{"recipients": recipient(t)}, ""},
		"nobody can read": {nil, "no age recipient"},
		"off":             {map[string]string{"interval": "0s"}, ""},
		"a bad recipient": {map[string]string{"recipients": "AGE-SECRET-KEY-1"}, "not an age recipient"},
		"a bad interval":  {map[string]string{"interval": "often", "recipients": recipient(t)}, `"often" is not a duration`},
		"too often":       {map[string]string{"interval": "1s", "recipients": recipient(t)}, "at least 1m0s"},
		"a bad number":    {map[string]string{"keep": "all", "recipients": recipient(t)}, `"all" is not a number`},
		"a bad location":  {map[string]string{"location": "s3://bucket", "recipients": recipient(t)}, "unsupported location"},
	} {
		data := map[string][]byte{}
		for key, value := range tt.data {
			data[key] = []byte(value)
		}
		_, err := Parse(data)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestStatusSurvivesTheConfigMap(t *testing.T) {
	want := schedule.Status{Last: storage.Entry{Name: "20260501T120000Z", Size: 42, Location: "/backups/x"}, Kept: 3, Failure: "disk full"}
	if diff := cmp.Diff(want, ParseStatus(StatusData(want))); diff != "" {
		t.Error(diff)
	}
	if got := StatusData(schedule.Status{Failure: strings.Repeat("ü", 1000)})["failure"]; len(got) > maxFailure {
		t.Errorf("the failure has %d bytes", len(got))
	}
}
