// Package management makes a real cluster a management cluster: Drover's image is built from the running program and delivered to machines,
// its components are installed, and the objects of clusters are moved there, or back.
//
// It knows how, not when: the phases of a command are in package workflow. Each step can be repeated, after a failure or for no reason.
//
//	Image, Deliver   the program as an image, on machines before a Pod asks for it   image.go
//	Install          kinds, roles, webhooks, credentials and the Deployment          install.go, secrets.go
//	Ready            waits for the manager there                                     ready.go
//	Move             all objects of one cluster                                      move.go, selection.go, configs.go, records.go, sides.go, pause.go
package management
