package fault

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestMatchingFault(t *testing.T) {
	tests := map[string]struct {
		fault  Fault
		method string
		path   string
		want   bool
	}{
		"a fault without matchers strikes every call":  {Fault{Kind: ServerError}, "GET", "/devices/1", true},
		"the method must match":                        {Fault{Kind: ServerError, Method: "POST"}, "GET", "/devices/1", false},
		"the method matches in any case":               {Fault{Kind: ServerError, Method: "get"}, "GET", "/devices/1", true},
		"a star stands for one element":                {Fault{Kind: Timeout, Path: "/devices/*"}, "GET", "/devices/1", true},
		"a star does not stand for two elements":       {Fault{Kind: Timeout, Path: "/devices/*"}, "GET", "/devices/1/ips", false},
		"a fault of devices never strikes calls":       {Fault{Kind: NoCapacity}, "POST", "/projects/1/devices", false},
		"a probability that is not reached lets calls": {Fault{Kind: ServerError, Probability: 0.4}, "GET", "/", false},
		"a probability that is reached strikes":        {Fault{Kind: ServerError, Probability: 0.6}, "GET", "/", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewSet()
			s.roll = func() float64 { return 0.5 }
			if _, err := s.Add("p", tt.fault); err != nil {
				t.Fatal(err)
			}
			if _, got := s.StrikeCall("p", httptest.NewRequest(tt.method, tt.path, nil), tt.path); got != tt.want {
				t.Errorf("struck = %v, want %v", got, tt.want)
			}
			if _, got := s.StrikeCall("other", httptest.NewRequest(tt.method, tt.path, nil), tt.path); got {
				t.Error("it struck another project")
			}
		})
	}
}

func TestCountEndsAFault(t *testing.T) {
	s := NewSet()
	f, err := s.Add("p", Fault{Kind: NoCapacity, Hostname: "cp-*", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	var struck []bool
	for _, host := range []string{"cp-1", "worker", "cp-2", "cp-3"} {
		_, hit := s.StrikeDevice("p", NoCapacity, host)
		struck = append(struck, hit)
	}
	if want := []bool{true, false, true, false}; !equal(struck, want) {
		t.Errorf("struck = %v, want %v", struck, want)
	}
	if got := s.List("p")[0].Struck; got != 2 {
		t.Errorf("counted %d strikes, want 2", got)
	}
	if !s.Remove("p", f.ID) || s.Remove("p", f.ID) {
		t.Error("a fault can be removed once, and only once")
	}
}

func TestInvalidFaultsAreRejected(t *testing.T) {
	for name, f := range map[string]Fault{
		"an unknown kind":        {Kind: "fire"},
		"a probability over one": {Kind: Timeout, Probability: 1.5},
		"a broken pattern":       {Kind: Timeout, Path: "/["},
		"a status of success":    {Kind: ServerError, Status: 200},
	} {
		if _, err := NewSet().Add("p", f); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestFaultsRoundTripAsJSON(t *testing.T) {
	var f Fault
	if err := json.NewDecoder(strings.NewReader(`{"kind":"slow-provisioning","delay":"1.5s"}`)).Decode(&f); err != nil {
		t.Fatal(err)
	}
	if time.Duration(f.Delay) != 1500*time.Millisecond {
		t.Errorf("delay = %v", time.Duration(f.Delay))
	}
}

func equal(a, b []bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
