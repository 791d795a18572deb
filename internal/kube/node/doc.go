// Package node builds what a local machine boots from: an [Image], which is a
// root file system and a containerd store that already holds every container
// image kubeadm asks for. It takes programs that hack/build has compiled, the
// Kubernetes binary of package kube, and tools of the host, and keeps the
// result in the user's cache, one directory per content:
//
//	<user cache>/drover/node/
//	  part-71b0…/           some programs; a second name of each is in
//	  programs-3f2a…/       containerd, runc, CNI plugins, CoreDNS, pause, the network agent
//	  image-v1.36.3-9c1d…/  an Image
//	    holders/            links to the machines that were made from it
//
// Entries that no machine holds and that were not used lately are removed when
// a new one is made.
//
// It never downloads, never installs anything on the host and knows nothing
// about machines that run. Start at [Builder.Image].
package node
