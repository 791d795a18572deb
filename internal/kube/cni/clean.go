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

// Clean removes all configuration of an Agent from a node: the file in confDir, the routes and the
// tables. It can be repeated. Forwarding stays enabled, because others may depend on it, and
// running Pods keep their addresses.
func Clean(ctx context.Context, confDir string) error {
	var errs []error
	// First, so that no Pod starts on a network that is being removed.
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
		return nil // a kernel without IPv6 has no table
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
