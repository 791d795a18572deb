// Package metal serves the Packet HTTP API for machines that a driver provides. It owns the desired
// state of devices, addresses, keys and reservations, stores it before it responds, and makes the
// driver reach it. It never touches a machine itself and knows nothing about Kubernetes. Start with
// Open; follow a device from create.go to controller.go.
//
//	POST /projects/{id}/devices
//	  │ recorded, then answered
//	  ▼
//	queued ─► provisioning ─► active ◄─► powering_off, inactive, powering_on
//	              │             ▲ │
//	              ▼             │ ▼
//	            failed      reinstalling          any ─► deprovisioning ─► gone
package metal
