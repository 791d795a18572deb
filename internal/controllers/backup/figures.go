package backup

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Figures are the metrics of backups. Only the leader has values other than 0.
type Figures struct {
	last, every, kept, size prometheus.Gauge
	failing                 prometheus.Gauge
}

// NewFigures registers the metrics.
func NewFigures(registry prometheus.Registerer) (*Figures, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	f := &Figures{
		last:    gauge("drover_backup_last_success_timestamp_seconds", "Time of the newest backup of the management plane, 0 without any."),
		every:   gauge("drover_backup_interval_seconds", "Interval of scheduled backups, 0 if they are off."),
		kept:    gauge("drover_backup_kept", "Number of backups."),
		size:    gauge("drover_backup_size_bytes", "Size of the newest backup, 0 if the storage doesn't tell."),
		failing: gauge("drover_backup_failing", "1 if the latest attempt to make a backup failed."),
	}
	for _, one := range []prometheus.Collector{f.last, f.every, f.kept, f.size, f.failing} {
		if err := registry.Register(one); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Figures) off() {
	f.every.Set(0)
	f.failing.Set(0)
}

func (f *Figures) observe(o outcome) {
	f.every.Set(o.every.Seconds())
	f.failing.Set(0)
	if o.status.Failure != "" {
		f.failing.Set(1)
	}
	if at := o.status.Last.Time(); !at.IsZero() {
		f.last.Set(float64(at.Unix()))
		f.kept.Set(float64(o.status.Kept))
		f.size.Set(float64(o.status.Last.Size))
	}
}
