package inventory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// machineFacts are those of a server with the plan server.medium.
var machineFacts = driver.Facts{CPUs: 8, MemoryBytes: 31 << 30, Arch: "amd64"}

func server(change func(*Server)) *Server {
	s := &Server{ID: "s1", Spec: Spec{Name: "one"}, Status: Status{State: Ready, Facts: machineFacts, Since: now}}
	change(s)
	return s
}

func TestTransitions(t *testing.T) {
	problem := driver.Problem{Check: "disk", Message: "the disk is full", Remedy: "delete files"}
	held := func(state State) func(*Server) {
		return func(s *Server) { s.State, s.DeviceID = state, "d1" }
	}
	in := func(state State) func(*Server) { return func(s *Server) { s.State = state } }
	for name, tt := range map[string]struct {
		from   func(*Server)
		do     func(*Server) error
		state  State
		device string
		fails  bool
	}{
		"a check makes a server ready":               {in(Discovered), func(s *Server) error { s.RecordInspection(machineFacts, nil, now); return nil }, Ready, "", false},
		"a problem keeps it out of use":              {in(Ready), func(s *Server) error { s.RecordInspection(machineFacts, []driver.Problem{problem}, now); return nil }, Discovered, "", false},
		"a check does not touch a server in use":     {held(InUse), func(s *Server) error { s.RecordInspection(machineFacts, []driver.Problem{problem}, now); return nil }, InUse, "d1", false},
		"a check does not repair a failed server":    {in(Failed), func(s *Server) error { s.RecordInspection(machineFacts, nil, now); return nil }, Failed, "", false},
		"a ready server is claimed":                  {in(Ready), func(s *Server) error { return s.Claim("d1", now) }, Provisioning, "d1", false},
		"a claim may be repeated":                    {held(InUse), func(s *Server) error { return s.Claim("d1", now) }, InUse, "d1", false},
		"a server in use is not claimed":             {held(InUse), func(s *Server) error { return s.Claim("d2", now) }, InUse, "d1", true},
		"a server being cleaned is not claimed":      {held(Cleaning), func(s *Server) error { return s.Claim("d2", now) }, Cleaning, "d1", true},
		"a failed server is not claimed":             {in(Failed), func(s *Server) error { return s.Claim("d2", now) }, Failed, "", true},
		"an unchecked server is not claimed":         {in(Discovered), func(s *Server) error { return s.Claim("d2", now) }, Discovered, "", true},
		"a drained server is not claimed":            {func(s *Server) { s.Drained = true }, func(s *Server) error { return s.Claim("d2", now) }, Ready, "", true},
		"a boot makes it used":                       {held(Provisioning), func(s *Server) error { s.RecordBoot("d1", now); return nil }, InUse, "d1", false},
		"the boot of another device does not":        {held(Provisioning), func(s *Server) error { s.RecordBoot("d2", now); return nil }, Provisioning, "d1", false},
		"a late boot does not end the cleaning":      {held(Cleaning), func(s *Server) error { s.RecordBoot("d1", now); return nil }, Cleaning, "d1", false},
		"a deleted device releases it":               {held(Provisioning), func(s *Server) error { s.Release("d1", now); return nil }, Cleaning, "d1", false},
		"another device does not release it":         {held(InUse), func(s *Server) error { s.Release("d2", now); return nil }, InUse, "d1", false},
		"a clean server returns":                     {held(Cleaning), func(s *Server) error { s.Return("d1", nil, now); return nil }, Ready, "", false},
		"an unclean server fails":                    {held(Cleaning), func(s *Server) error { s.Return("d1", &problem, now); return nil }, Failed, "", false},
		"another device does not return it":          {held(Cleaning), func(s *Server) error { s.Return("d2", nil, now); return nil }, Cleaning, "d1", false},
		"a failed server is reset":                   {in(Failed), func(s *Server) error { return s.Reset(now) }, Discovered, "", false},
		"a server in use is not reset":               {held(InUse), func(s *Server) error { return s.Reset(now) }, InUse, "d1", true},
		"a server in use can't be removed":           {held(InUse), func(s *Server) error { return s.Removable() }, InUse, "d1", true},
		"a server in use stays where it is":          {held(InUse), func(s *Server) error { return s.Edit(Spec{Name: "one", Metro: "da"}, now) }, InUse, "d1", true},
		"labels of a server in use may change":       {held(InUse), func(s *Server) error { return s.Edit(Spec{Name: "one", Labels: map[string]string{"a": "b"}}, now) }, InUse, "d1", false},
		"another address needs another check":        {in(Ready), func(s *Server) error { return s.Edit(Spec{Name: "one", SSH: &driver.SSH{Host: "192.0.2.9"}}, now) }, Discovered, "", false},
		"a server in use does not fail by a reset":   {held(InUse), func(s *Server) error { s.Fail(problem, now); return nil }, InUse, "d1", false},
		"an idle server fails if it is not restored": {in(Discovered), func(s *Server) error { s.Fail(problem, now); return nil }, Failed, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(tt.from)
			err := tt.do(s)
			if (err != nil) != tt.fails {
				t.Errorf("got error %v, want one: %v", err, tt.fails)
			}
			if s.State != tt.state || s.DeviceID != tt.device {
				t.Errorf("got %s with %q, want %s with %q", s.State, s.DeviceID, tt.state, tt.device)
			}
			if before := server(tt.from); s.State == Failed && before.State != Failed && len(s.Problems) == 0 {
				t.Error("a failed server does not say why")
			}
		})
	}
}

// TestNoSequenceBreaksTheInvariant applies random events. A device is on a server exactly while the
// server says so, and no claim succeeds that a reader of the record would not expect.
func TestNoSequenceBreaksTheInvariant(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := server(func(s *Server) { s.State = Discovered })
		for range 30 {
			device := []string{"d1", "d2"}[random.IntN(2)]
			before := *s
			switch random.IntN(8) {
			case 0:
				s.RecordInspection(machineFacts, nil, now)
			case 1:
				s.RecordInspection(machineFacts, []driver.Problem{{Message: "bad"}}, now)
			case 2:
				if err := s.Claim(device, now); err == nil && before.DeviceID != device && !before.Available() {
					t.Fatalf("%s claimed a server that was %s with %q", device, before.State, before.DeviceID)
				}
			case 3:
				s.RecordBoot(device, now)
			case 4:
				s.Release(device, now)
			case 5:
				s.Return(device, nil, now)
			case 6:
				s.Return(device, &driver.Problem{Message: "unclean"}, now)
			case 7:
				_ = s.Reset(now)
			}
			if used := slices.Contains([]State{Provisioning, InUse, Cleaning}, s.State); used != s.Held() {
				t.Fatalf("a server is %s with device %q", s.State, s.DeviceID)
			}
			if before.Held() && s.Held() && before.DeviceID != s.DeviceID {
				t.Fatalf("a server went from %s to %s without being returned", before.DeviceID, s.DeviceID)
			}
		}
	}
}

func TestEffectivePlan(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Server)
		want   string
	}{
		"facts determine the plan":        {func(*Server) {}, "server.medium"},
		"some memory is always missing":   {func(s *Server) { s.Facts = driver.Facts{CPUs: 2, MemoryBytes: 2<<30 - 100<<20} }, "server.small"},
		"a tiny server has none":          {func(s *Server) { s.Facts = driver.Facts{CPUs: 1, MemoryBytes: 1 << 30} }, ""},
		"few CPUs and much memory":        {func(s *Server) { s.Facts = driver.Facts{CPUs: 2, MemoryBytes: 256 << 30} }, "server.small"},
		"a label names it":                {func(s *Server) { s.Labels = map[string]string{"plan": "c3.small.x86"} }, "c3.small.x86"},
		"the owner's word comes first":    {func(s *Server) { s.Plan, s.Labels = "m3.large.x86", map[string]string{"plan": "c3.small.x86"} }, "m3.large.x86"},
		"a server that was never checked": {func(s *Server) { s.Facts = driver.Facts{} }, ""},
	} {
		if got := server(tt.change).EffectivePlan(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	with := func(id string, seq uint64, change func(*Server)) *Server {
		return server(func(s *Server) { s.ID, s.Name, s.Seq = id, id, seq; change(s) })
	}
	all := []*Server{
		with("anywhere", 1, func(*Server) {}),
		with("dallas", 3, func(s *Server) { s.Metro = "da" }),
		with("rack", 4, func(s *Server) { s.Metro, s.Facility = "da", "da11" }),
		with("used", 2, func(s *Server) { s.Metro, s.State, s.DeviceID = "am", InUse, "d1" }),
		with("reserved", 5, func(s *Server) { s.Project = "p1" }),
		with("drained", 6, func(s *Server) { s.Drained, s.Plan = true, "c3.small.x86" }),
		with("named", 7, func(s *Server) { s.Plan = "m3.large.x86" }),
	}
	for name, tt := range map[string]struct {
		order Order
		want  string
	}{
		"a server of the metro comes first":       {Order{Plan: "server.medium", Metro: "da"}, "rack"},
		"a server of no metro serves all":         {Order{Plan: "server.medium", Metro: "am"}, "anywhere"},
		"another facility does not fit":           {Order{Plan: "server.medium", Metro: "da", Facility: "da6"}, "dallas"},
		"a drained server is left out":            {Order{Plan: "c3.small.x86", Metro: "da"}, ""},
		"a named plan is ordered by its name":     {Order{Plan: "m3.large.x86", Metro: "da"}, "named"},
		"a reserved server needs its reservation": {Order{Plan: "server.medium", Metro: "da", ID: "reserved"}, "reserved"},
		"a reservation of a used server":          {Order{Plan: "server.medium", ID: "used"}, ""},
	} {
		got := ""
		if s := Choose(all, tt.order); s != nil {
			got = s.ID
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
