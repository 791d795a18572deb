package metal

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
)

const (
	defaultPerPage = 10
	maxPerPage     = 1000
	maxPage        = 100000
)

// page is the requested part of a list.
type page struct {
	number, size int
	url          *url.URL
}

// paged reads page and per_page from a request.
func (c *call) paged(size int) (page, error) {
	q := c.r.URL.Query()
	p := page{number: 1, size: size, url: c.r.URL}
	if err := bounded(q, "page", maxPage, &p.number); err != nil {
		return p, err
	}
	return p, bounded(q, "per_page", maxPerPage, &p.size)
}

func bounded(q url.Values, key string, limit int, v *int) error {
	text := q.Get(key)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return request.Refuse(http.StatusUnprocessableEntity, "%s must be a number from 1 to %d", key, limit)
	}
	*v = min(n, limit)
	return nil
}

func (p page) offset() int { return (p.number - 1) * p.size }

// meta describes the page, given the total number of items. Its links have no version prefix:
// clients resolve them against their base URL.
func (p page) meta(total int) api.Meta {
	last := max(1, (total+p.size-1)/p.size)
	m := api.Meta{Total: total, CurrentPage: p.number, LastPage: last, First: p.link(1), Last: p.link(last), Self: p.link(p.number)}
	if p.number > 1 {
		m.Previous = p.link(min(p.number-1, last))
	}
	if p.number < last {
		m.Next = p.link(p.number + 1)
	}
	return m
}

func (p page) link(number int) *api.Href {
	q := p.url.Query()
	q.Set("page", strconv.Itoa(number))
	q.Set("per_page", strconv.Itoa(p.size))
	return &api.Href{Href: p.url.Path + "?" + q.Encode()}
}

// slice returns the page of a complete list.
func slice[T any](p page, items []T) []T {
	from := min(p.offset(), len(items))
	return items[from:min(from+p.size, len(items))]
}
