// Package bootstrap turns a real cluster into a management cluster: it builds Drover's image from the
// running program and preloads it on machines, installs Drover's components, and moves the objects of
// a cluster between management planes.
//
// It owns how, not when: package lifecycle decides in which phase each step runs. Every step can be
// repeated, after a failure or without one.
//
//	Image, Deliver   the program as an image, on machines before a Pod needs it      image.go
//	Install          kinds, roles, webhooks, credentials and the Deployment          install.go, secrets.go
//	Ready            waits for the manager                                           ready.go
//	Move             all objects of one cluster    move.go, selection.go, configs.go, records.go, sides.go, pause.go
package bootstrap
