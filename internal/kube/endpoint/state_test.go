package endpoint

import (
	"testing"
	"time"
)

// at returns a time on the clock of a machine.
func at(seconds float64) time.Time {
	return time.Unix(1e6, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// quiet is a state for which nobody answers for the address.
func quiet(founder bool) *State {
	s := NewState("a", founder)
	s.Probed(at(-1))
	s.Probed(at(0))
	return s
}

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(s *State)
		at   float64
		want Verb
	}{
		{"an unknown lease is read", func(*State) {}, 0, Read},
		{"a missing lease is taken", func(s *State) { s.Observe(Lease{}, at(0)) }, 0, Take},
		{"a free lease is taken", func(s *State) { s.Observe(Lease{Version: "7"}, at(0)) }, 0, Take},
		{"an own lease is renewed", func(s *State) { s.Observe(Lease{Holder: "a", Version: "7"}, at(0)) }, 0, Take},
		{"that of another is read", func(s *State) { s.Observe(Lease{Holder: "b", Version: "7"}, at(0)) }, .9, Read},
		{"that of another is taken when it has expired", func(s *State) { s.Observe(Lease{Holder: "b", Version: "7"}, at(-3.5)) }, 0, Take},
		{"one that was renewed since is not", func(s *State) {
			s.Observe(Lease{Holder: "b", Version: "7"}, at(-3.5))
			s.Observe(Lease{Holder: "b", Version: "8"}, at(-1))
		}, 0, Read},
		{"a holder that promised more is waited for", func(s *State) { s.Observe(Lease{Holder: "b", Version: "7", Duration: 9 * time.Second}, at(-8)) }, 0, Read},
		{"nothing is taken while another machine answers", func(s *State) { s.Observe(Lease{}, at(0)); s.Heard() }, 0, Read},
		{"nor before it had the time to answer", func(s *State) { s.Observe(Lease{}, at(0)); s.Heard(); s.Probed(at(0)) }, .05, Read},
		{"nor long after the last probe", func(s *State) { s.Observe(Lease{}, at(0)) }, 1.1, Read},
		{"a request without an outcome is followed by a read", func(s *State) { s.Observe(Lease{Holder: "a", Version: "7"}, at(0)); s.Failed() }, 0, Read},
		{"a machine that stops frees its lease", func(s *State) { s.Observe(Lease{Holder: "a", Version: "7"}, at(0)); s.Stop() }, 0, Free},
		{"a machine that stops takes nothing", func(s *State) { s.Observe(Lease{Version: "7"}, at(-20)); s.Stop() }, 0, Read},
		{"a drained machine frees its lease", func(s *State) {
			s.Observe(Lease{Holder: "a", Version: "7"}, at(0))
			s.Meet(Peers{Others: 2, Able: 1, Draining: true})
		}, 0, Free},
		{"unless no other can take it", func(s *State) {
			s.Observe(Lease{Holder: "a", Version: "7"}, at(0))
			s.Meet(Peers{Others: 2, Draining: true})
		}, 0, Take},
		{"a drained machine leaves a free lease to others", func(s *State) {
			s.Observe(Lease{Version: "7"}, at(-8))
			s.Meet(Peers{Others: 2, Able: 1, Draining: true})
		}, 0, Read},
		{"but not forever", func(s *State) {
			s.Observe(Lease{Version: "7"}, at(-8.5))
			s.Meet(Peers{Others: 2, Able: 1, Draining: true})
		}, 0, Take},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := quiet(false)
			tc.set(s)
			if got := s.Next(at(tc.at)); got != tc.want {
				t.Errorf("Next = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	renew := func(s *State) { s.Wrote(Lease{Holder: "a", Version: "7"}, at(0), at(0.2)) }
	for _, tc := range []struct {
		name    string
		founder bool
		set     func(s *State)
		at      float64
		want    bool
	}{
		{"nothing is known", false, func(*State) {}, 0, false},
		{"the lease is its own, but maybe not for long", false, func(s *State) { s.Observe(Lease{Holder: "a", Version: "7"}, at(0)) }, 0, false},
		{"it was renewed", false, renew, 2.49, true},
		{"time counts from the start of the request", false, renew, 2.5, false},
		{"a request failed since", false, func(s *State) { renew(s); s.Failed() }, 2.4, true},
		{"another took it", false, func(s *State) { renew(s); s.Observe(Lease{Holder: "b", Version: "8"}, at(1)) }, 1, false},
		{"it was freed", false, func(s *State) { renew(s); s.Wrote(Lease{Version: "8"}, at(1), at(1)) }, 1, false},
		{"another answers for the address", false, func(s *State) { renew(s); s.Heard() }, 1, false},
		{"the node is drained", false, func(s *State) { renew(s); s.Meet(Peers{Others: 1, Able: 1, Draining: true}) }, 1, false},
		{"it may have been freed", false, func(s *State) { renew(s); s.Asked(Free, at(1)); s.Failed() }, 1, false},
		{"the only machine keeps it when its etcd stalls", false, func(s *State) { s.Meet(Peers{}); renew(s) }, 60, true},
		{"until another joins", false, func(s *State) { s.Meet(Peers{}); renew(s); s.Meet(Peers{Others: 1}) }, 60, false},
		{"or answers", false, func(s *State) { s.Meet(Peers{}); renew(s); s.Heard() }, 60, false},
		{"one that doesn't know whether it is the only one loses it", false, renew, 60, false},
		{"the first machine needs it before there is a lease", true, func(*State) {}, 0, true},
		{"for as long as nobody answers", true, func(*State) {}, 60, true},
		{"but not if another answers", true, func(s *State) { s.Heard() }, 0, false},
		{"the first machine keeps it while the lease is missing", true, func(s *State) { s.Observe(Lease{}, at(0)) }, 0, true},
		{"it may have written one", true, func(s *State) { s.Asked(Take, at(-2)); s.Failed(); s.Probed(at(0)) }, 0.4, true},
		{"and it lasts as long as that", true, func(s *State) { s.Asked(Take, at(-2)); s.Failed(); s.Probed(at(0)) }, 0.6, false},
		{"a lease ends that", true, func(s *State) { s.Observe(Lease{Holder: "b", Version: "1"}, at(0)) }, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := quiet(tc.founder)
			tc.set(s)
			if got := s.Holds(at(tc.at)); got != tc.want {
				t.Errorf("Holds = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lease Lease
		seen  float64
		last  float64
		at    float64
		want  float64
	}{
		{"a holder renews regularly", Lease{Holder: "a", Version: "1"}, 0, 1, 1, 1.5},
		{"others watch as often", Lease{Holder: "b", Version: "1"}, 0, 1, 1, 1.5},
		{"and take it at the very end", Lease{Holder: "b", Version: "1"}, 0, 3.3, 3.3, 3.5},
		{"a free lease is urgent", Lease{Version: "1"}, 0, 1, 1, 1.1},
		{"but not forever", Lease{Version: "1"}, 0, 5, 5, 5.5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := quiet(false)
			s.Observe(tc.lease, at(tc.seen))
			if got := s.Due(at(tc.last), at(tc.at)); got.Sub(at(tc.want)).Abs() > time.Millisecond {
				t.Errorf("due after %s, want %gs", got.Sub(at(0)), tc.want)
			}
		})
	}
}
