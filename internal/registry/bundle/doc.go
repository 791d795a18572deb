// Package bundle knows what is in a PackageBundle: its name and the order of names, its packages and what they depend on, its signature,
// the schemas of its packages, and how it differs from another.
//
//	Name      v1-36-4, and which of two is later              name.go
//	Find      a package in a version                          find.go, dependencies.go
//	Verify    who signed it, over which bytes                 keys.go, canonical.go, excludes.go, signature.go
//	Schema    what config a package accepts                   schema.go, loops.go, config.go
//	Compare   what another bundle would change                compare.go
//	Parse     a file, and whether it can be published         parse.go, check.go, version.go
//
// It asks nobody: there is neither a network nor a Kubernetes client in it. Start with Parse and Verify.
package bundle
