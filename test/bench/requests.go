package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver/memory"
	"github.com/drover-dev/drover/internal/test/metalbench"
)

// measureMetal fills a metal service with devices and queries it from many clients. It runs in this
// process, so the figures include the clients' CPU time.
func measureMetal(ctx context.Context, b *bench) error {
	figures, err := metalbench.Run(ctx, metalbench.Options{
		Home: filepath.Join(b.work, "requests"), Driver: memory.New, Devices: b.devices, Clients: 16, Each: 3 * time.Second,
	})
	for _, f := range figures {
		row(f.Name, "%7.0f/s, median %s, p99 %s", f.PerSecond, f.Median.Round(10*time.Microsecond), f.P99.Round(10*time.Microsecond))
	}
	return err
}
