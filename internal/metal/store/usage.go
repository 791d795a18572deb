package store

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/drover-dev/drover/internal/metal/capacity"
)

// settingsKey is the key of the capacity settings in the bucket of metadata.
const settingsKey = "capacity"

// AddDevice records a new device and counts it.
func (t *Tx) AddDevice(d *Device) error {
	if err := t.countDevice(d, 1); err != nil {
		return err
	}
	return t.Devices().Put(d)
}

// Usage is the table of the devices of projects by plan and metro. It is part of the transaction
// that adds or drops a device, so that whoever reads it before they add another one can't be wrong.
func (t *Tx) Usage() Table[capacity.Use] {
	return table(t, bucketUsage, func(u *capacity.Use) string { return useID(*u) })
}

func useID(u capacity.Use) string {
	return u.Project + "/" + u.Plan + "/" + u.Metro + "/" + strconv.FormatBool(u.Reserved)
}

// use returns what a device counts as.
func (d *Device) use() capacity.Use {
	return capacity.Use{Project: d.ProjectID, Plan: d.Plan, Metro: d.Metro, Reserved: d.ReservationID != "", Devices: 1}
}

func (t *Tx) countDevice(d *Device, n int) error {
	u := d.use()
	have, err := t.Usage().Get(useID(u))
	if ignoreNotFound(err) != nil {
		return err
	}
	u.Devices = n
	if have != nil {
		u.Devices += have.Devices
	}
	if u.Devices <= 0 {
		return t.Usage().Delete(useID(u))
	}
	return t.Usage().Put(&u)
}

// recount makes the table of usage match the devices. Versions that did not count left it empty.
func (s *Store) recount(devices map[string]capacity.Use) error {
	same := true
	err := s.View(func(tx *Tx) error {
		found := 0
		err := tx.Usage().Each(func(u *capacity.Use) error {
			found++
			same = same && devices[useID(*u)] == *u
			return nil
		})
		same = same && found == len(devices)
		return err
	})
	if err != nil || same {
		return err
	}
	return s.Update(func(tx *Tx) error {
		if err := dropAll(tx.Usage(), func(*capacity.Use) bool { return true }); err != nil {
			return err
		}
		for _, u := range devices {
			if err := tx.Usage().Put(&u); err != nil {
				return err
			}
		}
		return nil
	})
}

// CapacitySettings returns the settings of an administrator, or the zero value.
func (t *Tx) CapacitySettings() (capacity.Settings, error) {
	var s capacity.Settings
	data := t.bucket(bucketMeta).Get([]byte(settingsKey))
	if data == nil {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("the capacity settings are damaged: %w", err)
	}
	return s, nil
}

// SetCapacitySettings replaces the settings.
func (t *Tx) SetCapacitySettings(s capacity.Settings) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the capacity settings: %w", err)
	}
	return t.change(bucketMeta).Put([]byte(settingsKey), data)
}
