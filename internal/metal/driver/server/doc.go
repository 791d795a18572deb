// Package server is a driver whose machines are servers that users own. The servers have an
// operating system and are reached with SSH; nothing else has to reach them, and they don't reach
// metal. Metal decides which machine has which server.
//
//	metal ──▶ Driver ──ssh──▶ inspect                         before a server is given to a machine
//	             │    ──ssh──▶ agent put, events, addresses   while it becomes one
//	             │    ──ssh──▶ agent put-upgrade, events      when its Kubernetes is upgraded in place
//	             └────ssh────▶ agent clean                    when the machine is deleted
//
// It connects only when there is something to do: a provisioned server needs neither the driver nor
// the agent. Start at [New].
package server
