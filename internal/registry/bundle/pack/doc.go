// Package pack makes bundles out of charts: it packs charts that are directories, always into the same bytes, finds out the digests that
// they will have in a registry, and writes that down.
//
// A Definition says what goes in. Start with ReadDefinition or FromDirectory, then Build.
package pack
