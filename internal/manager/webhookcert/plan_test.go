package webhookcert

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"
)

var (
	epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts = []string{"drover-webhook.drover-system.svc", "127.0.0.1"}
)

const day = 24 * time.Hour

func TestPlan(t *testing.T) {
	fresh := made(t, epoch)
	rotated := applied(t, fresh, stepAddCA, epoch.Add(500*day))
	switched := applied(t, rotated, stepIssueLeaf, epoch.Add(500*day+overlap))
	for _, tc := range []struct {
		name  string
		now   time.Time
		have  *material
		names []string
		want  step
	}{
		{"nothing is there", epoch, nil, hosts, stepCreate},
		{"all is fresh", epoch, fresh, hosts, stepNone},
		{"the leaf has a third of its life left", epoch.Add(61 * day), fresh, hosts, stepIssueLeaf},
		{"the leaf has a bit more left", epoch.Add(59 * day), fresh, hosts, stepNone},
		{"the leaf lacks a name", epoch, fresh, []string{"elsewhere.example"}, stepIssueLeaf},
		{"the leaf expired during downtime", epoch.Add(100 * day), fresh, hosts, stepIssueLeaf},
		{"the CA has a third of its life left", epoch.Add(490 * day), fresh, hosts, stepAddCA},
		{"the CA expired during downtime", epoch.Add(3 * 365 * day), fresh, hosts, stepCreate},
		{"the CA was issued by a clock that was ahead", epoch.Add(-day), fresh, hosts, stepCreate},
		{"the leaf was issued by a clock that was ahead", epoch.Add(day), leafAt(t, fresh, fresh, epoch.Add(30*day)), hosts, stepIssueLeaf},
		{"a new CA is not trusted everywhere yet", epoch.Add(500*day + overlap/2), leafAt(t, rotated, fresh, epoch.Add(480*day)), hosts, stepNone},
		{"a new CA is young and the leaf is due", epoch.Add(500*day + overlap/2), leafAt(t, rotated, fresh, epoch.Add(430*day)), hosts, stepNone},
		{"a new CA is trusted everywhere", epoch.Add(500*day + overlap), leafAt(t, rotated, fresh, epoch.Add(480*day)), hosts, stepIssueLeaf},
		{"a new CA is young but the leaf is dead", epoch.Add(500*day + time.Minute), rotated, hosts, stepIssueLeaf},
		{"the old CA may still be needed", epoch.Add(500*day + overlap + overlap/2), switched, hosts, stepNone},
		{"the old CA is needed no more", epoch.Add(500*day + 2*overlap), switched, hosts, stepDropCAs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, next := plan(tc.now, tc.have, tc.names)
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got == stepNone && !next.After(tc.now) {
				t.Errorf("wakes at %s, which is not after %s: would spin", next, tc.now)
			}
		})
	}
}

// TestTrustIsNeverBroken simulates four years, waking only when plan requests it, and checks at
// every step that clients with the bundle of an hour ago accept the current certificate.
func TestTrustIsNeverBroken(t *testing.T) {
	now := epoch
	m := made(t, now)
	trusted := map[time.Time]*material{now: m}
	steps := map[step]int{}
	for now.Before(epoch.Add(4 * 365 * day)) {
		todo, next := plan(now, m, hosts)
		if todo == stepNone {
			now = next
			continue
		}
		steps[todo]++
		m = applied(t, m, todo, now)
		for at, old := range trusted {
			if now.Sub(at) >= overlap {
				delete(trusted, at)
				continue
			}
			verify(t, old, m.leaf, now)
		}
		trusted[now] = m
	}
	if steps[stepCreate] != 0 || steps[stepAddCA] < 2 || steps[stepDropCAs] < 2 || steps[stepIssueLeaf] < 20 {
		t.Errorf("steps taken in four years: %v", steps)
	}
	if len(m.ca.Certs) > 2 {
		t.Errorf("%d CAs have piled up", len(m.ca.Certs))
	}
}

func TestCertificateRoundTripsThroughTheSecret(t *testing.T) {
	m := applied(t, made(t, epoch), stepAddCA, epoch.Add(500*day))
	data := m.encode()
	back, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.ca.PEM(), m.ca.PEM()) || len(back.ca.Certs) != 2 {
		t.Error("the bundle changed")
	}
	verify(t, back, m.leaf, epoch.Add(day))
	for key := range data {
		broken := map[string][]byte{}
		for k, v := range data {
			broken[k] = v
		}
		broken[key] = []byte("garbage")
		if _, err := decode(broken); err == nil {
			t.Errorf("garbage in %q went unnoticed", key)
		}
	}
}

func TestLeafOfAForeignCAIsRejected(t *testing.T) {
	m := made(t, epoch)
	m.leaf = made(t, epoch).leaf
	data := m.encode()
	if _, err := decode(data); err == nil {
		t.Error("accepted")
	}
}

func made(t *testing.T, now time.Time) *material {
	t.Helper()
	m, err := create(now, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func applied(t *testing.T, m *material, todo step, now time.Time) *material {
	t.Helper()
	next, err := m.apply(todo, now, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// leafAt returns m with a leaf that issuer made at the given time.
func leafAt(t *testing.T, m, issuer *material, at time.Time) *material {
	t.Helper()
	out := *m
	out.leaf = applied(t, issuer, stepIssueLeaf, at).leaf
	return &out
}

func verify(t *testing.T, trusted *material, leaf pair, now time.Time) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted.ca.PEM())
	for _, host := range hosts {
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: host}); err != nil {
			t.Fatalf("at %s: %v", now, err)
		}
	}
}
