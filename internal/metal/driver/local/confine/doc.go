// Package confine takes privileges away from local machines that root on a machine could use
// against the host, and that kubelet, containerd and runc don't need:
//
//	Thread   capabilities, system calls       a thread, and all processes that descend from it
//	Cgroup   devices, settings of the kernel  a cgroup v2, and all cgroups below it
//
// Everything is inherited and can't be regained. Machines share the kernel of their host, so this
// is no boundary: design record 0021 lists what remains possible. The package never decides which
// processes are confined.
package confine
