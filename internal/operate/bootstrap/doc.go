// Package bootstrap turns a real cluster into a management cluster: it builds Drover's image from
// the running program and preloads it on machines, installs Drover's components, and moves the
// objects of a cluster between management planes.
//
// It owns how, not when: package lifecycle decides in which phase each step runs. Every step can be
// repeated, after a failure or without one.
//
//	Image, Deliver   preload the program's image on machines     image.go
//	Install          install CRDs, roles and the Deployment      install.go, secrets.go
//	Ready            wait for the manager                        ready.go
//	Move             move all objects of one cluster             move.go, selection.go, clients.go
package bootstrap
