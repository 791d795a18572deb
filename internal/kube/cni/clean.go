package cni

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/knftables"
)

// Clean removes from a node all that an Agent makes there: the file in confDir, the routes and the
// tables. It may be repeated. Forwarding stays on, for others may rely on it, and Pods that run
// keep the addresses they have.
func Clean(ctx context.Context, confDir string) error {
	var errs []error
	// First, so that no Pod is started on a network that is being taken away.
	if err := os.Remove(filepath.Join(confDir, conflistName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("removing the network configuration: %w", err))
	}
	_, err := syncRoutes(nil)
	errs = append(errs, err)
	for _, family := range families() {
		errs = append(errs, cleanTable(ctx, family))
	}
	return errors.Join(errs...)
}

func cleanTable(ctx context.Context, family knftables.Family) error {
	nft, err := knftables.New(family, tableName)
	if err != nil && family == knftables.IPv6Family {
		return nil // A kernel without IPv6 has no such table.
	}
	if err != nil {
		return fmt.Errorf("using nftables for family %s: %w", family, err)
	}
	tx := nft.NewTransaction()
	dropTable(tx)
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("removing the %s table %q: %w", family, tableName, err)
	}
	return nil
}
