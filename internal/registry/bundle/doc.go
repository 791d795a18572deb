// Package bundle implements the content of a PackageBundle: names and their order, packages and
// their dependencies, signatures, schemas, and the comparison of two bundles.
//
//	Name      v1-36-4 and its order                 name.go
//	Find      a version of a package                find.go, dependencies.go
//	Verify    signatures and the bytes they cover   keys.go, canonical.go, excludes.go, signature.go
//	Schema    validation of config                  schema.go, loops.go, config.go
//	Compare   differences between bundles           compare.go
//	Parse     files and checks before publishing    parse.go, check.go, version.go
//
// It makes no requests, neither over the network nor to Kubernetes. Start with Parse and Verify.
package bundle
