// Package charts has the charts that ship with Drover, for its registry to offer.
package charts

import "embed"

// Files has a directory for each chart. Names that begin with an underscore are templates too.
//
//go:embed all:cni
var Files embed.FS
