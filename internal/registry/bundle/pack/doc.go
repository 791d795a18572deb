// Package pack builds bundles from charts. It packages chart directories reproducibly and records
// the digests that charts will have in a registry.
//
// A Definition lists the charts. Start with ReadDefinition or FromDirectory, then Build.
package pack
