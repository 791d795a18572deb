package fault

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		fault Fault
		want  string
	}{
		"a minimal fault":           {Fault{Kind: Timeout}, ""},
		"all fields":                {Fault{Kind: ServerError, Method: "get", Path: "/devices/*", Count: 3, Probability: 1, Status: 599, Delay: Duration(time.Second)}, ""},
		"no kind":                   {Fault{}, `unknown kind ""`},
		"another kind":              {Fault{Kind: "fire"}, `unknown kind "fire"`},
		"a probability above 1":     {Fault{Kind: Timeout, Probability: 1.1}, "probability 1.1 is not between 0 and 1"},
		"a probability below 0":     {Fault{Kind: Timeout, Probability: -0.1}, "probability -0.1 is not between 0 and 1"},
		"a negative count":          {Fault{Kind: Timeout, Count: -1}, "cannot be negative"},
		"a negative delay":          {Fault{Kind: Timeout, Delay: -1}, "cannot be negative"},
		"a broken path":             {Fault{Kind: Timeout, Path: "["}, `pattern "["`},
		"a broken host name":        {Fault{Kind: NoCapacity, Hostname: "a["}, `pattern "a["`},
		"a status that is no error": {Fault{Kind: ServerError, Status: 200}, "status 200 is not an error"},
		"a status beyond HTTP":      {Fault{Kind: ServerError, Status: 600}, "status 600 is not an error"},
	} {
		err := tt.fault.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestDurationsAreWrittenAsInGo(t *testing.T) {
	data, err := json.Marshal(Fault{Kind: Timeout, Delay: Duration(1500 * time.Millisecond)})
	if err != nil || !strings.Contains(string(data), `"delay":"1.5s"`) {
		t.Errorf("%s, error %v", data, err)
	}
	var f Fault
	if err := json.Unmarshal([]byte(`{"delay":"2m"}`), &f); err != nil || time.Duration(f.Delay) != 2*time.Minute {
		t.Errorf("delay %s, error %v", time.Duration(f.Delay), err)
	}
	if err := json.Unmarshal([]byte(`{"delay":"soon"}`), &f); err == nil {
		t.Error("a delay that is no duration is read")
	}
}

func TestFaultStrikesMatchingCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		fault        Fault
		method, path string
		struck       bool
	}{
		"every call":              {Fault{Kind: ServerError}, "GET", "/devices/a", true},
		"a method in any case":    {Fault{Kind: ServerError, Method: "post"}, "POST", "/devices", true},
		"another method":          {Fault{Kind: ServerError, Method: "POST"}, "GET", "/devices", false},
		"a pattern":               {Fault{Kind: ServerError, Path: "/devices/*"}, "GET", "/devices/a", true},
		"a pattern has one level": {Fault{Kind: ServerError, Path: "/devices/*"}, "GET", "/devices/a/ips", false},
		"a fault of devices":      {Fault{Kind: NoCapacity}, "POST", "/projects/p/devices", false},
	} {
		s := NewSet()
		if _, err := s.Add("p", tt.fault); err != nil {
			t.Fatal(err)
		}
		if _, struck := s.StrikeCall("p", httptest.NewRequest(tt.method, tt.path, nil), tt.path); struck != tt.struck {
			t.Errorf("%s: struck: %t", name, struck)
		}
		if _, struck := s.StrikeCall("other", httptest.NewRequest(tt.method, tt.path, nil), tt.path); struck {
			t.Errorf("%s: another project is struck", name)
		}
	}
}

func TestCountsAndProbabilities(t *testing.T) {
	s := NewSet()
	rolls := []float64{0.5, 0.49, 0.99, 0}
	s.roll = func() float64 {
		next := rolls[0]
		rolls = rolls[1:]
		return next
	}
	f, err := s.Add("p", Fault{Kind: NoCapacity, Hostname: "web-*", Count: 2, Probability: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, true, false, false} {
		if _, struck := s.StrikeDevice("p", NoCapacity, "web-1"); struck != want {
			t.Errorf("device %d: struck: %t", i+1, struck)
		}
	}
	if _, struck := s.StrikeDevice("p", NoCapacity, "db-1"); struck {
		t.Error("a host name that does not match is struck")
	}
	if all := s.List("p"); len(all) != 1 || all[0].Struck != 2 || all[0].ID != f.ID {
		t.Errorf("faults %+v", all)
	}
	if s.Remove("p", "other") || !s.Remove("p", f.ID) || s.Remove("p", "") || len(s.List("p")) != 0 {
		t.Error("a fault is removed twice, or not at all")
	}
}
