// Package reconcile is the frame that every controller of Drover has in common:
//
//	open ──▶ steps ──▶ status ──▶ close
//
// An Opening reads the object and skips it if it is gone or paused. Run takes the controller's
// steps, which do the work and record facts, until one of them returns an error. The controller's
// status.go turns the facts into conditions. Close writes the object once and maps the outcome to a
// result for the queue.
//
// Below all of that, writes.go makes sure that a reconcile never starts from a cache that lacks
// what the last reconcile of the same object wrote. Managers are made by NewManager and controllers
// take their options from a Guard; a controller contains no code for it.
//
// The package knows no kind and decides nothing about one. Messages are shortened by package text.
// Start with Step and Result, then Opening.
package reconcile
