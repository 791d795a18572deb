package store

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Entry is the indexed part of a record.
type Entry struct {
	ID      string
	Project string
	// Seq orders entries, oldest first, so that pages are stable while records are added.
	Seq uint64
	// Terms are the lookup keys of the record.
	Terms []string
	// Text is the searchable text.
	Text string
}

// ref is an entry in a sorted list.
type ref struct {
	seq uint64
	id  string
}

// Query selects entries. The zero value selects all.
type Query struct {
	// Project restricts the query; empty means all projects.
	Project string
	// Terms must all be present.
	Terms []string
	// AnyOf holds groups of terms; one of each group must be present.
	AnyOf [][]string
	// Search is a substring of the text of entries, ignoring case.
	Search string
}

// Index finds records by project and term without reading them. The cost of a page does not depend
// on the number of records, except with Search or with several terms that are each common.
type Index struct {
	mu      sync.RWMutex
	entries map[string]Entry
	lists   map[string][]ref
}

func newIndex() *Index { return &Index{entries: map[string]Entry{}, lists: map[string][]ref{}} }

// keys returns the lists that contain an entry: all, its project's, and one per term, with and
// without the project.
func (e Entry) keys() []string {
	keys := []string{listKey("", ""), listKey(e.Project, "")}
	for _, term := range e.Terms {
		keys = append(keys, listKey("", term), listKey(e.Project, term))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func listKey(project, term string) string { return project + "\x00" + term }

func (x *Index) put(e Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var before []string
	if old, ok := x.entries[e.ID]; ok {
		if slices.Equal(old.Terms, e.Terms) && old.Text == e.Text {
			return
		}
		before = old.keys()
	}
	after := e.keys()
	for _, key := range before {
		if _, kept := slices.BinarySearch(after, key); !kept {
			x.drop(key, e)
		}
	}
	for _, key := range after {
		if _, had := slices.BinarySearch(before, key); !had {
			x.add(key, e)
		}
	}
	x.entries[e.ID] = e
}

func (x *Index) remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.entries[id]
	if !ok {
		return
	}
	for _, key := range e.keys() {
		x.drop(key, e)
	}
	delete(x.entries, id)
}

func (x *Index) add(key string, e Entry) {
	list := x.lists[key]
	i, _ := position(list, e.Seq)
	x.lists[key] = slices.Insert(list, i, ref{seq: e.Seq, id: e.ID})
}

func (x *Index) drop(key string, e Entry) {
	list := x.lists[key]
	i, found := position(list, e.Seq)
	if !found {
		return
	}
	if len(list) == 1 {
		delete(x.lists, key)
		return
	}
	x.lists[key] = slices.Delete(list, i, i+1)
}

func position(list []ref, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(list, seq, func(r ref, seq uint64) int { return cmp.Compare(r.seq, seq) })
}

// Page returns at most limit IDs starting at offset, and their total number.
func (x *Index) Page(q Query, offset, limit int) (ids []string, total int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list, exact := x.candidates(q)
	if exact {
		offset = min(offset, len(list))
		for _, r := range list[offset:min(offset+limit, len(list))] {
			ids = append(ids, r.id)
		}
		return ids, len(list)
	}
	search := strings.ToLower(q.Search)
	for _, r := range list {
		if !x.entries[r.id].matches(q, search) {
			continue
		}
		if total >= offset && len(ids) < limit {
			ids = append(ids, r.id)
		}
		total++
	}
	return ids, total
}

// All returns every ID that a query selects.
func (x *Index) All(q Query) []string {
	ids, _ := x.Page(q, 0, int(^uint(0)>>2))
	return ids
}

// Count returns the number of entries that a query selects.
func (x *Index) Count(q Query) int {
	_, total := x.Page(q, 0, 0)
	return total
}

// candidates returns the shortest list that contains the whole result, and whether it is the
// result.
func (x *Index) candidates(q Query) (list []ref, exact bool) {
	list = x.lists[listKey(q.Project, "")]
	for _, term := range q.Terms {
		if narrower := x.lists[listKey(q.Project, term)]; len(narrower) <= len(list) {
			list = narrower
		}
	}
	return list, len(q.Terms) <= 1 && len(q.AnyOf) == 0 && q.Search == ""
}

func (e Entry) matches(q Query, search string) bool {
	for _, term := range q.Terms {
		if !slices.Contains(e.Terms, term) {
			return false
		}
	}
	for _, group := range q.AnyOf {
		if !slices.ContainsFunc(group, func(term string) bool { return slices.Contains(e.Terms, term) }) {
			return false
		}
	}
	return search == "" || strings.Contains(e.Text, search)
}
