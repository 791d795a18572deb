// Package settings is how scheduled backups of a management cluster are configured: the content of
// Secret drover-backup, which administrators change and the manager watches, and of the ConfigMap
// with what became of the backups. Start with Parse.
package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// Metal is the location for the metal service of the machines on one host.
const Metal = "metal"

// Keys of the Secret.
const (
	locationKey   = "location"
	intervalKey   = "interval"
	keepKey       = "keep"
	recipientsKey = "recipients"
	usernameKey   = "username"
	passwordKey   = "password"
	caKey         = "ca.crt"
)

// Settings say when, where and for whom backups are made.
type Settings struct {
	schedule.Schedule
	// Location is Metal, a directory of the manager, or oci://REGISTRY/REPOSITORY; none if empty.
	Location string `json:"location,omitempty"`
	// Recipients are age recipients. Only their keys open the backups.
	Recipients []string `json:"recipients,omitempty"`
	// Username, Password and CA are for a registry.
	Username string `json:"username,omitempty"`
	Password string `json:"-"`
	CA       string `json:"-"`
}

// Default returns the settings of a new management cluster.
func Default() Settings {
	return Settings{Schedule: schedule.Schedule{Every: schedule.DefaultEvery, Keep: schedule.DefaultKeep}}
}

// Parse reads the data of the Secret, and reports every problem at once.
func Parse(data map[string][]byte) (Settings, error) {
	s := Default()
	value := func(key string) string { return strings.TrimSpace(string(data[key])) }
	var problems []error
	if text := value(intervalKey); text != "" {
		every, err := time.ParseDuration(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %q is not a duration such as 1h", intervalKey, text))
		}
		s.Every = every
	}
	if text := value(keepKey); text != "" {
		keep, err := strconv.Atoi(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %q is not a number", keepKey, text))
		}
		s.Keep = keep
	}
	s.Location, s.Recipients = value(locationKey), strings.Fields(value(recipientsKey))
	s.Username, s.Password, s.CA = value(usernameKey), value(passwordKey), string(data[caKey])
	if len(problems) == 0 {
		problems = append(problems, s.Check())
	}
	return s, errors.Join(problems...)
}

// Check rejects settings with which no backup could be made or read.
func (s Settings) Check() error {
	problems := []error{s.Schedule.Check()}
	if _, err := s.AgeRecipients(); err != nil {
		problems = append(problems, err)
	}
	switch scheme, _, remote := strings.Cut(s.Location, "://"); {
	case s.Location == "" || s.Location == Metal:
	case remote && scheme != "oci":
		problems = append(problems, fmt.Errorf("unsupported location %q: use %s, oci://REGISTRY/REPOSITORY, or a directory of the manager", s.Location, Metal))
	default:
		if _, err := storage.Open(s.Location, storage.Cluster{Namespace: "n", Name: "n"}, storage.Access{}); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// AgeRecipients returns whom backups are encrypted for.
func (s Settings) AgeRecipients() ([]age.Recipient, error) {
	if len(s.Recipients) == 0 && !s.Off() {
		return nil, errors.New("backups have no age recipient, so that nobody could open them")
	}
	out := make([]age.Recipient, 0, len(s.Recipients))
	for _, text := range s.Recipients {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an age recipient: %w", text, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// Data returns the data of the Secret.
func (s Settings) Data() map[string][]byte {
	data := map[string][]byte{}
	for key, value := range map[string]string{
		locationKey: s.Location, intervalKey: s.Every.String(), keepKey: strconv.Itoa(s.Keep), recipientsKey: strings.Join(s.Recipients, "\n"),
		usernameKey: s.Username, passwordKey: s.Password, caKey: s.CA,
	} {
		if value != "" {
			data[key] = []byte(value)
		}
	}
	return data
}

// Keys of the ConfigMap.
const (
	lastKey    = "last"
	sizeKey    = "size"
	placeKey   = "location"
	keptKey    = "kept"
	failureKey = "failure"
)

// maxFailure bounds the message in a ConfigMap.
const maxFailure = 1000

// StatusData returns the data of the ConfigMap. It has no time but that of the newest backup, so
// that it changes only with a backup.
func StatusData(s schedule.Status) map[string]string {
	data := map[string]string{keptKey: strconv.Itoa(s.Kept)}
	if s.Last.Name != "" {
		data[lastKey], data[placeKey] = s.Last.Name, s.Last.Location
		data[sizeKey] = strconv.FormatInt(s.Last.Size, 10)
	}
	if s.Failure != "" {
		data[failureKey] = strings.ToValidUTF8(s.Failure[:min(len(s.Failure), maxFailure)], "")
	}
	return data
}

// ParseStatus reads the data of the ConfigMap.
func ParseStatus(data map[string]string) schedule.Status {
	kept, _ := strconv.Atoi(data[keptKey])
	size, _ := strconv.ParseInt(data[sizeKey], 10, 64)
	return schedule.Status{Last: storage.Entry{Name: data[lastKey], Size: size, Location: data[placeKey]}, Kept: kept, Failure: data[failureKey]}
}
