package main

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// stageLine matches a stage in the output of `drover up`.
var stageLine = regexp.MustCompile(`(?m)^ ✓ (.+?) +([\d.]+)s$`)

// measureUp repeatedly starts a plane that has been started before.
func measureUp(ctx context.Context, b *bench) error {
	if err := b.up(ctx); err != nil {
		return err
	}
	var totals []float64
	stages, order := map[string][]float64{}, []string{}
	for range b.rounds {
		if _, err := b.run(ctx, "down"); err != nil {
			return err
		}
		began := time.Now()
		out, err := b.run(ctx, "up")
		if err != nil {
			return err
		}
		totals = append(totals, time.Since(began).Seconds())
		for _, m := range stageLine.FindAllStringSubmatch(out, -1) {
			seconds, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return err
			}
			if _, seen := stages[m[1]]; !seen {
				order = append(order, m[1])
			}
			stages[m[1]] = append(stages[m[1]], seconds)
		}
	}
	row("ready", "%.1f s (median of %d, %.1f to %.1f)", median(totals), b.rounds, slices.Min(totals), slices.Max(totals))
	for _, name := range order {
		row("· "+name, "%.1f s", median(stages[name]))
	}
	return nil
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}
