package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/internal/metal"
)

// Values that a user may specify instead of a driver.
const (
	Auto = "auto" // the driver of the home, else local machines if the host supports them
	None = "none" // no metal service
)

// NoneError explains why no metal service runs although it was not disabled.
type NoneError struct{ Err error }

func (e *NoneError) Error() string {
	return fmt.Sprintf("local machines are not available: %v", e.Err)
}

func (e *NoneError) Unwrap() error { return e.Err }

// Choose returns the driver for the metal service of the home, or None. Usable returns why a driver
// can't be used here; a running service has proven that it can.
func Choose(ctx context.Context, h metal.Home, asked string, usable func(driver string) error) (string, error) {
	if asked != Auto && asked != None {
		if err := h.CheckDriver(asked); err != nil {
			return "", err
		}
	}
	last, err := h.ReadEndpoint()
	if err != nil && !errors.Is(err, metal.ErrNoMetal) {
		return "", err
	}
	_, running := Running(ctx, h)
	return choose(asked, last.Driver, running, usable)
}

func choose(asked, last string, running bool, usable func(string) error) (string, error) { //nolint:revive // A fact, not a switch.
	driver := asked
	if asked == Auto {
		driver = last
		if last == "" {
			driver = defaultDriver
		}
	}
	if driver == None || running {
		return driver, nil
	}
	err := usable(driver)
	if err != nil && asked == Auto {
		return None, &NoneError{Err: err}
	}
	return driver, err
}

// defaultDriver runs real machines.
const defaultDriver = "local"
