// Package plane runs the embedded management plane: etcd, kube-apiserver, kube-controller-manager
// and Drover's manager, and the Flux controllers if asked for, as supervised children of one
// process, with everything they need in one directory, the home. That process is also the registry.
//
// It owns the home and every process started from it. It never reconciles: the manager does that in
// a separate process.
//
//	Home       the directory: layout, format, lock          home.go
//	Config     what was chosen at the first start           config.go
//	PKI        certificates, issued and renewed             pki.go
//	Encryption the key that protects Secrets in etcd        encryption.go
//	Component  one child process, kept alive                component.go
//	Plane      all of them, in order                        plane.go
//	State      what an outsider can know about it           state.go
//
// Start with Run in plane.go, which is what `drover up --foreground` does, and Launch in launch.go,
// which puts that into the background.
package plane
