package cni

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/knftables"
)

const (
	tableName = "drover-cni"
	chainName = "postrouting"
	// directSet contains the destinations that see Pod addresses.
	directSet = "direct"
)

func families() []knftables.Family {
	return []knftables.Family{knftables.IPv4Family, knftables.IPv6Family}
}

// masquerade translates traffic from Pods to other destinations to the address of their node. It
// replaces the table in one transaction.
func masquerade(ctx context.Context, nft knftables.Interface, family knftables.Family, d Desired) error {
	tx := nft.NewTransaction()
	dropTable(tx)
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("Pods of this node talking to the world")})
	// Overlapping ranges are merged, since they would make the whole transaction fail.
	tx.Add(&knftables.Set{Name: directSet, Type: addressType(family), Flags: []knftables.SetFlag{knftables.IntervalFlag}, AutoMerge: knftables.PtrTo(true)})
	for _, direct := range append(ofFamily(d.Cluster, family), multicast(family)) {
		tx.Add(&knftables.Element{Set: directSet, Key: []string{direct.String()}})
	}
	tx.Add(&knftables.Chain{
		Name: chainName, Type: knftables.PtrTo(knftables.NATType),
		Hook: knftables.PtrTo(knftables.PostroutingHook), Priority: knftables.PtrTo(knftables.SNATPriority),
	})
	for _, own := range ofFamily(d.Ranges, family) {
		tx.Add(&knftables.Rule{Chain: chainName, Rule: knftables.Concat(family, "saddr", own, family, "daddr", "!=", "@", directSet, "masquerade")})
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("setting the %s table %q: %w", family, tableName, err)
	}
	return nil
}

// dropTable succeeds if the table does not exist.
func dropTable(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
}

func ofFamily(prefixes []netip.Prefix, family knftables.Family) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4() == (family == knftables.IPv4Family) {
			out = append(out, p)
		}
	}
	return out
}

func addressType(family knftables.Family) string {
	if family == knftables.IPv4Family {
		return "ipv4_addr"
	}
	return "ipv6_addr"
}

func multicast(family knftables.Family) netip.Prefix {
	if family == knftables.IPv4Family {
		return netip.MustParsePrefix("224.0.0.0/4")
	}
	return netip.MustParsePrefix("ff00::/8")
}
