package service

import (
	"errors"
	"testing"
)

func TestChoose(t *testing.T) {
	unusable := errors.New("local machines need root")
	for name, tt := range map[string]struct {
		asked, last string
		running     bool
		unusable    error
		want        string
		wantErr     error
	}{
		"a new home gets real machines where there can be some":     {asked: Auto, want: "local"},
		"a new home gets none where there can be none, and why":     {asked: Auto, unusable: unusable, want: None, wantErr: unusable},
		"what was used last is used again":                          {asked: Auto, last: "memory", want: "memory"},
		"what runs is used, and needs nothing more from the host":   {asked: Auto, last: "local", running: true, unusable: unusable, want: "local"},
		"what was used last and cannot be used now is not replaced": {asked: Auto, last: "local", unusable: unusable, want: None, wantErr: unusable},
		"a driver that is asked for is used":                        {asked: "memory", want: "memory"},
		"a driver that is asked for and cannot be used is an error": {asked: "local", unusable: unusable, want: "local", wantErr: unusable},
		"none is none, whatever runs":                               {asked: None, last: "local", running: true, want: None},
		"none needs nothing from the host":                          {asked: None, unusable: unusable, want: None},
	} {
		t.Run(name, func(t *testing.T) {
			usable := func(driver string) error {
				if driver == "local" {
					return tt.unusable
				}
				return nil
			}
			got, err := choose(tt.asked, tt.last, tt.running, usable)
			if got != tt.want || !errors.Is(err, tt.wantErr) {
				t.Errorf("chose %q (%v), want %q (%v)", got, err, tt.want, tt.wantErr)
			}
			var none *NoneError
			if soft := errors.As(err, &none); soft != (tt.asked == Auto && tt.wantErr != nil) {
				t.Errorf("error %v is one that a plane can do without: %v", err, soft)
			}
		})
	}
}
