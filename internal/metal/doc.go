// Package metal serves the Packet HTTP API in front of machines that a driver
// makes. It owns what is wanted of devices, addresses, keys and reservations,
// keeps that durable before it answers, and sees to it that the driver does
// it. It never touches a machine itself, and knows nothing of Kubernetes.
// Start with Open; follow a device from create.go to controller.go.
//
//	POST /projects/{id}/devices
//	  │ recorded, then answered
//	  ▼
//	queued ─► provisioning ─► active ◄─► powering_off, inactive, powering_on
//	              │             ▲ │
//	              ▼             │ ▼
//	            failed      reinstalling          any ─► deprovisioning ─► gone
package metal
