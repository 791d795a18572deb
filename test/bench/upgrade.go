package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/version"
)

// measureUpgrade upgrades a cluster of three control plane machines and a worker by a minor
// version: by new machines, and in place. Both times include the command that waits for the
// upgrade.
func measureUpgrade(ctx context.Context, b *bench) error {
	if err := requireRoot(); err != nil {
		return err
	}
	if err := b.up(ctx); err != nil {
		return err
	}
	c := &commands{bench: b, dir: filepath.Join(b.work, "upgrade")}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	took := map[string]time.Duration{}
	for _, way := range []struct{ name, title, controlPlane, workers string }{
		{"inplace", "four machines upgraded in place", ", upgradeRolloutStrategy: {type: InPlace}", ", upgradeRolloutStrategy: {type: InPlace}"},
		{"replaced", "four machines replaced", "", ""},
	} {
		text := strings.NewReplacer("{count: 1}", "{count: 3"+way.controlPlane+"}", "{name: md-0, count: 1}", "{name: md-0, count: 1"+way.workers+"}").
			Replace(specOf(way.name, "management: false", 1))
		var err error
		if took[way.name], err = c.upgrade(ctx, way.name, text); err != nil {
			return err
		}
		row(way.title, "%.1f s, %.1f s for each", took[way.name].Seconds(), took[way.name].Seconds()/4)
	}
	row("in place compared with replacement", "%.2f times as long", took["inplace"].Seconds()/took["replaced"].Seconds())
	return nil
}

// upgrade creates a cluster of the older version, upgrades it, and deletes it.
func (c *commands) upgrade(ctx context.Context, name, text string) (time.Duration, error) {
	file := name + ".yaml"
	write := func(minor string) error {
		newest := fmt.Sprintf("kubernetesVersion: %q", version.Minors()[0])
		return os.WriteFile(c.file(file), []byte(strings.Replace(text, newest, fmt.Sprintf("kubernetesVersion: %q", minor), 1)), 0o600)
	}
	plane := []string{"--kubeconfig", filepath.Join(c.home, "kubeconfig")}
	if err := write(version.Minors()[1]); err != nil {
		return 0, err
	}
	if _, err := c.here(ctx, append([]string{"create", "cluster", "-f", file}, plane...)...); err != nil {
		return 0, err
	}
	if err := write(version.Minors()[0]); err != nil {
		return 0, err
	}
	took, err := c.here(ctx, append([]string{"upgrade", "cluster", "-f", file}, plane...)...)
	if err != nil {
		return 0, err
	}
	_, err = c.here(ctx, append([]string{"delete", "cluster", "-f", file, "--yes"}, plane...)...)
	return took, err
}
