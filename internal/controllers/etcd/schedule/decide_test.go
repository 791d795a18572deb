package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestSchedulesAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"0 2 * * *":                   "",
		"*/5 * * * *":                 "",
		"@every 6h":                   "",
		"@daily":                      "",
		"@every 4m59s":                "more often than every 5m0s",
		"* * * * *":                   "more often than every 5m0s",
		"0,1 2 * * *":                 "more often than every 5m0s",
		"0 0 30 2 *":                  "never comes",
		"every day":                   "can't be read",
		"":                            "can't be read",
		"TZ=":                         "time zone",
		"CRON_TZ=Europe/Rome 0 2 * *": "time zone",
		"0 2 * * * *":                 "can't be read",
	} {
		_, err := parse(text)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestDecide(t *testing.T) {
	at := func(clock string) time.Time {
		out, err := time.Parse("15:04", clock)
		if err != nil {
			t.Fatal(err)
		}
		return out.AddDate(2026, 0, 0)
	}
	created := at("00:30")
	for name, tt := range map[string]struct {
		schedule string
		h        history
		want     time.Time
	}{
		"a new schedule waits for its time":           {"0 2 * * *", history{created: created}, at("02:00")},
		"what was missed is due":                      {"0 2 * * *", history{created: created.AddDate(0, 0, -3)}, at("02:00").AddDate(0, 0, -3)},
		"after a snapshot comes the next":             {"0 * * * *", history{created: created, attempt: at("03:00"), saved: at("03:00")}, at("04:00")},
		"a late snapshot doesn't delay the next":      {"0 * * * *", history{created: created, attempt: at("03:40"), saved: at("03:40")}, at("04:00")},
		"a failure is tried again soon":               {"0 * * * *", history{created: created, attempt: at("03:00"), failures: 1}, at("03:02")},
		"and later each time":                         {"0 2 * * *", history{created: created, attempt: at("03:00"), failures: 4}, at("03:16")},
		"but at least every hour":                     {"0 2 * * *", history{created: created, attempt: at("03:00"), failures: 1000}, at("04:00")},
		"and not after the next is due":               {"*/5 * * * *", history{created: created, attempt: at("03:00"), failures: 3}, at("03:05")},
		"an interrupted snapshot is tried again soon": {"0 2 * * *", history{created: created, attempt: at("03:00"), saved: at("02:00")}, at("03:02")},
		"also the first":                              {"0 2 * * *", history{created: created, attempt: at("03:00")}, at("03:02")},
		"an interval counts from the last snapshot":   {"@every 6h", history{created: created, attempt: at("03:00"), saved: at("03:00")}, at("09:00")},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(tt.schedule)
			if err != nil {
				t.Fatal(err)
			}
			if got := decide(s, tt.h); !got.Equal(tt.want) {
				t.Errorf("due at %s, want %s", got, tt.want)
			}
		})
	}
}
