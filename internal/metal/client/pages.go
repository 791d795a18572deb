package client

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-dev/drover/internal/base/bounded"
)

const (
	perPage = 250
	// maxPages is the API's own limit.
	maxPages = 100000
	// maxRestarts is how often a list that changes during reading is restarted.
	maxRestarts = 5
)

// meta is the position of a page in the list.
type meta struct {
	Total       int `json:"total"`
	CurrentPage int `json:"current_page"`
	LastPage    int `json:"last_page"`
}

// page is one page of a list.
type page[T any] struct {
	items []T
	meta  *meta
}

var errMoving = errors.New("the list kept changing while it was read")

// list reads all pages. Objects that are created or deleted during reading shift others between
// pages, so that one could be missed; the list is then read again from the start.
func list[T any](ctx context.Context, r call, decode func(context.Context, call) (page[T], error)) ([]T, error) {
	ctx = bounded.WithBudget(ctx, maxList)
	for range maxRestarts {
		items, moved, err := listOnce(ctx, r, decode)
		if err != nil || !moved {
			return items, err
		}
	}
	return nil, r.fail(&Error{Kind: Unavailable, Err: errMoving})
}

func listOnce[T any](ctx context.Context, r call, decode func(context.Context, call) (page[T], error)) (items []T, moved bool, err error) {
	total := -1
	for number := 1; number <= maxPages; number++ {
		p, err := decode(ctx, r.page(number))
		if err != nil {
			return nil, false, err
		}
		items = append(items, p.items...)
		if p.meta == nil { // no pagination, or an old server: a full page may have a successor
			if len(p.items) < perPage {
				return items, false, nil
			}
			continue
		}
		if total >= 0 && p.meta.Total != total {
			return nil, true, nil
		}
		total = p.meta.Total
		if number >= p.meta.LastPage {
			return items, false, nil
		}
	}
	return items, false, nil
}

func (r call) page(number int) call {
	query := url.Values{}
	maps.Copy(query, r.query)
	query.Set("page", strconv.Itoa(number))
	query.Set("per_page", strconv.Itoa(perPage))
	return call{method: http.MethodGet, path: r.path, query: query}
}
