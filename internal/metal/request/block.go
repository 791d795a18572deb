package request

import (
	"math/bits"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
)

// maxQuantity is the largest block of addresses.
const maxQuantity = 256

// Block is a valid request for addresses.
type Block struct{ Metro, Facility string }

// BlockOf validates a request and reports every problem. Known reports which types of addresses
// exist.
func BlockOf(req *api.IPReserve, known func(kind string) bool) (Block, error) {
	var b Block
	var wrong problems
	if !known(req.Type) {
		wrong.add(req.Type + " is not a supported type of addresses")
	}
	if req.Quantity < 1 || req.Quantity > maxQuantity || bits.OnesCount(uint(req.Quantity)) != 1 {
		wrong.add("Quantity must be 1, 2, 4, … or 256")
	}
	wrong.add(TagProblem(req.Tags))
	wrong.add(b.place(req))
	return b, Unprocessable(wrong...)
}

// place determines the metro of a block; clients send both fields, one of them empty.
func (b *Block) place(req *api.IPReserve) string {
	if strings.HasPrefix(req.Type, "global_") {
		return ""
	}
	if req.Metro != "" {
		m, found := catalog.FindMetro(req.Metro)
		if !found {
			return req.Metro + " is not a valid metro"
		}
		b.Metro = m.Code
		return ""
	}
	if req.Facility == "" {
		return "Facility can't be blank"
	}
	m, found := catalog.MetroOf(req.Facility)
	if !found {
		return req.Facility + " is not a valid facility"
	}
	b.Metro, b.Facility = m.Code, strings.ToLower(req.Facility)
	return ""
}
