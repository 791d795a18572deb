package guest

import (
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// serveDNS resolves names from the hosts file and rejects all others at once. A machine has no
// other name server; without one, resolvers wait for seconds and CoreDNS does not start.
func serveDNS(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		hosts, _ := os.ReadFile("/etc/hosts")
		if reply, err := answer(buffer[:n], string(hosts)); err == nil {
			conn.WriteTo(reply, from) //nolint:errcheck // the client retries
		}
	}
}

// answer returns the reply to a query.
func answer(query []byte, hosts string) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := p.Question()
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(question.Name.String(), ".")
	addresses := lookup(hosts, name)
	reply := dnsmessage.Header{ID: header.ID, Response: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	if len(addresses) == 0 {
		reply.RCode = dnsmessage.RCodeRefused
	}
	b := dnsmessage.NewBuilder(nil, reply)
	b.EnableCompression()
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if err := b.Question(question); err != nil {
		return nil, err
	}
	if err := b.StartAnswers(); err != nil {
		return nil, err
	}
	if err := addAnswers(&b, question, addresses); err != nil {
		return nil, err
	}
	return b.Finish()
}

func addAnswers(b *dnsmessage.Builder, q dnsmessage.Question, addresses []netip.Addr) error {
	resource := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5}
	for _, a := range addresses {
		var err error
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			err = b.AResource(resource, dnsmessage.AResource{A: a.As4()})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			err = b.AAAAResource(resource, dnsmessage.AAAAResource{AAAA: a.As16()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lookup searches a hosts file.
func lookup(hosts, name string) (addresses []netip.Addr) {
	for line := range strings.Lines(hosts) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		ip, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, n := range fields[1:] {
			if strings.EqualFold(n, name) {
				addresses = append(addresses, ip)
			}
		}
	}
	return addresses
}
