// Package counter publishes numbers that code counts for itself as metrics.
package counter

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter is a number that only grows.
type Counter struct {
	Name, Help string
	Value      *atomic.Int64
}

// Register publishes counters of a part of Drover. Without a registry it does nothing.
func Register(metrics prometheus.Registerer, part string, counters ...Counter) error {
	if metrics == nil {
		return nil
	}
	var failed error
	for _, c := range counters {
		failed = errors.Join(failed, metrics.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Namespace: "drover", Subsystem: part, Name: c.Name, Help: c.Help},
			func() float64 { return float64(c.Value.Load()) },
		)))
	}
	return failed
}
