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
)

// masquerade hides Pods behind their node when they talk to anybody but Pods.
// The table is replaced as a whole, in one transaction.
func masquerade(ctx context.Context, nft knftables.Interface, family knftables.Family, d Desired) error {
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("Pods of this node talking to the world")})
	tx.Flush(&knftables.Table{})
	tx.Add(&knftables.Chain{
		Name: chainName, Type: knftables.PtrTo(knftables.NATType),
		Hook: knftables.PtrTo(knftables.PostroutingHook), Priority: knftables.PtrTo(knftables.SNATPriority),
	})
	for _, own := range ofFamily(d.Ranges, family) {
		for _, pods := range ofFamily(d.Cluster, family) {
			tx.Add(&knftables.Rule{Chain: chainName, Rule: knftables.Concat(family, "saddr", own.String(), family, "daddr", pods.String(), "return")})
		}
		tx.Add(&knftables.Rule{Chain: chainName, Rule: knftables.Concat(family, "saddr", own.String(), family, "daddr", "!=", multicast(family), "masquerade")})
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("setting the %s table %q: %w", family, tableName, err)
	}
	return nil
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

func multicast(family knftables.Family) string {
	if family == knftables.IPv4Family {
		return "224.0.0.0/4"
	}
	return "ff00::/8"
}
