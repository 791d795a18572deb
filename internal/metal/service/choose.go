package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/internal/metal"
)

// What a user may ask for instead of a driver.
const (
	Auto = "auto" // the driver of the home, else machines on this host if it can have some
	None = "none" // no metal
)

// NoneError says why there is no metal although nobody asked for none.
type NoneError struct{ Err error }

func (e *NoneError) Error() string {
	return fmt.Sprintf("local machines are not available: %v", e.Err)
}

func (e *NoneError) Unwrap() error { return e.Err }

// Choose returns the driver that a metal in the home is to have, None if none
// is to run. Usable says why a driver cannot be used here; a metal that runs
// has shown that it can.
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

// defaultDriver makes real machines.
const defaultDriver = "local"
