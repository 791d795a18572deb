// Package counter publishes counters of controllers and clients as uniform metrics.
package counter

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter is a number that only increases.
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

// ByAction counts actions by name. All names are served from the start, because an alert can't tell
// zero from unknown.
func ByAction(name, help string, actions ...string) *prometheus.CounterVec {
	all := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"action"})
	for _, action := range actions {
		all.WithLabelValues(action)
	}
	return all
}

// Serve registers collectors. A second manager in one process shares those that are already
// registered.
func Serve(metrics prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		err := metrics.Register(c)
		if there := (prometheus.AlreadyRegisteredError{}); err != nil && !errors.As(err, &there) {
			return err
		}
	}
	return nil
}
