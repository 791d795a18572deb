package guest

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

const hosts = "127.0.0.1 localhost\n198.18.0.2 box box.example # me\nfe80::1 box\nbroken\n"

func query(t *testing.T, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	q := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := answer(packed, hosts)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    dnsmessage.Type
		answers int
		code    dnsmessage.RCode
	}{
		{"box.", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"BOX.example.", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"box.", dnsmessage.TypeAAAA, 1, dnsmessage.RCodeSuccess},
		{"box.", dnsmessage.TypeMX, 0, dnsmessage.RCodeSuccess},
		{"elsewhere.", dnsmessage.TypeA, 0, dnsmessage.RCodeRefused},
	} {
		m := query(t, tt.name, tt.kind)
		if m.ID != 7 || !m.Response || m.RCode != tt.code || len(m.Answers) != tt.answers {
			t.Errorf("%s %s: %+v", tt.name, tt.kind, m)
		}
	}
	if _, err := answer([]byte{1, 2}, hosts); err == nil {
		t.Error("a broken query is answered")
	}
}

func TestRules(t *testing.T) {
	s := Spec{
		Addresses: []Address{{IP: netip.MustParseAddr("198.18.0.2"), Prefix: netip.MustParsePrefix("198.18.0.0/22"), Gateway: netip.MustParseAddr("198.18.0.1")}},
	}
	if got := rules(s); strings.Contains(got, "dnat") || !strings.Contains(got, "rt ip nexthop 198.18.0.1 ip daddr != 198.18.0.0/22 reject") {
		t.Errorf("rules without metadata:\n%s", got)
	}
	s.Metadata = netip.MustParseAddrPort("198.18.0.1:8080")
	if got := rules(s); strings.Count(got, "ip daddr 169.254.169.254 tcp dport 80 dnat to 198.18.0.1:8080") != 1 || strings.Contains(got, "prerouting") {
		t.Errorf("rules with metadata:\n%s", got)
	}
}

func TestHierarchies(t *testing.T) {
	got := Hierarchies("9:cpu,cpuacct:/a\n2:name=systemd:/\n1:memory:/x:y\n0::/user\n")
	want := []Hierarchy{{Name: "cpu,cpuacct", Option: "cpu,cpuacct"}, {Name: "systemd", Option: "name=systemd"}, {Name: "memory", Option: "memory"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
}

func TestOverlayOptionsEscapeSeparators(t *testing.T) {
	got := overlayOptions("/cache:1", "/home/a,b")
	if want := `lowerdir=/cache\:1,upperdir=/home/a\,b/upper,workdir=/home/a\,b/work`; got != want {
		t.Errorf("options %q, want %q", got, want)
	}
}
