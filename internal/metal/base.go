package metal

import (
	"context"

	"github.com/drover-dev/drover/internal/metal/api"
)

type baseKey struct{}

func withBase(ctx context.Context, base string) context.Context {
	return context.WithValue(ctx, baseKey{}, base)
}

func baseOf(ctx context.Context) string {
	base, _ := ctx.Value(baseKey{}).(string)
	return base
}

// linker builds the paths of objects below the base that the client uses.
type linker string

func (l linker) to(kind, id string) string { return string(l) + "/" + kind + "/" + id }

func (l linker) href(kind, id string) *api.Href { return &api.Href{Href: l.to(kind, id)} }

func (c *call) link() linker { return linker(c.base) }
