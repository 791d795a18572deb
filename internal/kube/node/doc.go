// Package node builds the [Image] of local machines: a root file system and a containerd store with
// every container image that kubeadm requires. It combines programs compiled by hack/build, the
// Kubernetes binary of package kube, and tools of the host, and keeps the result in the user's
// cache, one directory per content:
//
//	<user cache>/drover/node/
//	  part-71b0…/           some programs; a second name of each is in
//	  programs-3f2a…/       containerd, runc, CNI plugins, CoreDNS, pause, the network agent
//	  image-v1.36.3-9c1d…/  an Image
//	    holders/            links to the machines that were made from it
//
// Entries that no machine holds and that were not used recently are removed when a new one is
// created.
//
// It never downloads, never installs anything on the host and knows nothing about running machines.
// Start at [Builder.Image].
package node
