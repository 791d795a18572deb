// Package guest runs inside a local machine: its first process, which sets the machine up, boots it
// from its userdata and supervises its services, and the small programs that talk to it, such as
// systemctl. It is the drover program itself, started by another name.
//
//	clone ──► wait for the host ──► mounts ──► network ──► services ──► userdata ──► idle
//	                                                                                │
//	          exit ◄── kill everything ◄── stop services ◄── SIGTERM, poweroff ◄────┘
//
// It never touches the host: everything it mounts, configures and starts ends with its namespaces.
// It reports through the console and the file of events, both of which the driver reads. Start at
// [Main].
package guest
