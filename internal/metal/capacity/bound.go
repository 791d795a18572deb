package capacity

import (
	"fmt"
	"math"
)

// resource is what a bound counts.
type resource string

const (
	machines resource = "machines"
	servers  resource = "servers"
	cpus     resource = "CPUs"
	memory   resource = "MiB of memory"
	disk     resource = "MiB of disk"
)

// bound is an upper limit on one resource.
type bound struct {
	what             resource
	most, used, need int64
	ofProject        bool
}

// fits returns how many machines fit below the bound. What is used may exceed it, because it can be
// lowered at any time.
func (b bound) fits() int64 {
	if b.need <= 0 {
		return math.MaxInt32
	}
	return min(max(b.most-b.used, 0)/b.need, math.MaxInt32)
}

// exceeded returns the error for an order that exceeds the bound.
func (b bound) exceeded(o Order) error {
	if b.ofProject {
		return &QuotaError{What: string(b.what), Most: b.shown(b.most), Used: b.shown(b.used)}
	}
	return &ShortageError{Plan: o.Plan, What: string(b.what), Need: b.shown(b.need), Free: b.shown(max(b.most-b.used, 0))}
}

func (b bound) shown(n int64) int64 {
	if b.what == memory || b.what == disk {
		return n >> 20
	}
	return n
}

// ShortageError means that there is not enough for another device, whoever orders it.
type ShortageError struct {
	Plan, What string
	Need, Free int64
}

func (e *ShortageError) Error() string {
	return fmt.Sprintf("%s needs %d %s, and %d are free", e.Plan, e.Need, e.What, e.Free)
}

// QuotaError means that a project may not have another device.
type QuotaError struct {
	What       string
	Most, Used int64
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("The quota of this project is %d %s, and %d are in use", e.Most, e.What, e.Used)
}
