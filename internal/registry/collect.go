package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/opencontainers/go-digest"
)

const (
	collectPath = "/drover/collect"
	// allWrites is more than there can be at a time.
	allWrites = 1 << 30
	// patience is how long removing waits for uploads to end.
	patience = time.Minute
	// uploadAge is how old an upload must be at least to be taken for abandoned.
	uploadAge = 24 * time.Hour
	// DefaultAge is ample for a push to get from its content to its manifest.
	DefaultAge = time.Hour
)

// Collected is what was removed.
type Collected struct {
	// Removed counts pieces of content that nothing refers to.
	Removed int   `json:"removed"`
	Bytes   int64 `json:"bytes"`
	// Uploads counts those that were begun and never ended.
	Uploads int `json:"uploads"`
	// Damaged is content that was not what its digest says. It has to be pushed again.
	Damaged []Damaged `json:"damaged,omitempty"`
}

// Damaged is content that nobody could use, and the repositories that refer to it.
type Damaged struct {
	Digest       string   `json:"digest"`
	Repositories []string `json:"repositories,omitempty"`
}

func (s *Server) serveCollect(w http.ResponseWriter, r *http.Request) {
	age, err := time.ParseDuration(r.FormValue("age"))
	if err != nil || age < 0 || r.Method != http.MethodPost {
		http.Error(w, "POST with an age, as in ?age=1h, is wanted", http.StatusBadRequest)
		return
	}
	done, err := s.Collect(r.Context(), age)
	if err != nil {
		s.log.Error("Removing unused content failed", "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(done)
}

// Collect removes content that no manifest refers to and that is older than age, uploads that were given up, and what is damaged. Others
// can read meanwhile, and write but for the last moment of it.
func (s *Server) Collect(ctx context.Context, age time.Duration) (Collected, error) {
	found, err := s.store.survey(ctx)
	if err != nil {
		return Collected{}, fmt.Errorf("looking at content: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.writes.Acquire(wait, allWrites); err != nil {
		return Collected{}, errors.New("uploads are under way and don't end: try again later")
	}
	defer s.writes.Release(allWrites)
	return s.store.collect(ctx, found, time.Now().Add(-age))
}

// piece is some content.
type piece struct {
	size    int64
	since   time.Time
	damaged bool
}

// survey reads all content.
func (s *store) survey(ctx context.Context) (map[digest.Digest]piece, error) {
	found := map[digest.Digest]piece{}
	err := s.namespace.Blobs().Enumerate(ctx, func(d digest.Digest) error {
		info, err := s.driver.Stat(ctx, contentFile(d))
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		sound, err := s.sound(ctx, d)
		found[d] = piece{size: info.Size(), since: info.ModTime(), damaged: !sound}
		return err
	})
	if isMissing(err) { // There has never been any.
		err = nil
	}
	return found, err
}

// sound tells whether content is what its digest says.
func (s *store) sound(ctx context.Context, d digest.Digest) (bool, error) {
	content, err := s.driver.Reader(ctx, contentFile(d), 0)
	if err != nil {
		return false, err
	}
	defer content.Close()
	sum, err := d.Algorithm().FromReader(content)
	return sum == d, err
}

// references are the repositories that refer to each piece of content.
type references map[digest.Digest]map[string]bool

func (r references) add(d digest.Digest, repository string) {
	if r[d] == nil {
		r[d] = map[string]bool{}
	}
	r[d][repository] = true
}

// collect removes what nothing refers to. What a damaged manifest referred to is not known, so nothing but that manifest goes then: it
// can be pushed again before the next time.
func (s *store) collect(ctx context.Context, found map[digest.Digest]piece, before time.Time) (Collected, error) {
	var done Collected
	used, lost, err := s.references(ctx, found)
	if err != nil {
		return done, fmt.Errorf("reading manifests: %w", err)
	}
	for _, d := range slices.Sorted(maps.Keys(found)) {
		p := found[d]
		switch {
		case p.damaged:
			done.Damaged = append(done.Damaged, Damaged{Digest: d.String(), Repositories: slices.Sorted(maps.Keys(used[d]))})
		case used[d] == nil && !lost && p.since.Before(before):
			done.Removed++
			done.Bytes += p.size
		default:
			continue
		}
		if err := s.remove(d); err != nil {
			return done, err
		}
	}
	done.Uploads, err = s.giveUp(ctx, earlier(before, time.Now().Add(-uploadAge)))
	return done, err
}

// giveUp removes uploads that were begun before a time.
func (s *store) giveUp(ctx context.Context, before time.Time) (int, error) {
	if _, err := s.driver.Stat(ctx, repositoriesDir); isMissing(err) { // Nothing was ever uploaded.
		return 0, nil
	}
	given, errs := storage.PurgeUploads(ctx, s.driver, before, true)
	return len(given), errors.Join(errs...)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// references reads all manifests. Lost says that one of them can't be read.
func (s *store) references(ctx context.Context, found map[digest.Digest]piece) (used references, lost bool, err error) {
	used = references{}
	repositories, ok := s.namespace.(distribution.RepositoryEnumerator)
	if !ok {
		return nil, false, errors.New("the registry can't list its repositories")
	}
	err = repositories.Enumerate(ctx, func(name string) error {
		repository, err := s.repository(ctx, name)
		if err != nil {
			return err
		}
		manifests, err := repository.Manifests(ctx)
		if err != nil {
			return err
		}
		list, ok := manifests.(distribution.ManifestEnumerator)
		if !ok {
			return fmt.Errorf("repository %q can't list its manifests", name)
		}
		err = list.Enumerate(ctx, func(d digest.Digest) error {
			used.add(d, name)
			if p, ok := found[d]; ok && p.damaged {
				lost = true
				return nil
			}
			return used.follow(ctx, manifests, d, name)
		})
		if isMissing(err) { // A repository with uploads only.
			return nil
		}
		return err
	})
	if isMissing(err) {
		err = nil
	}
	return used, lost, err
}

// follow adds what a manifest refers to.
func (r references) follow(ctx context.Context, manifests distribution.ManifestService, d digest.Digest, name string) error {
	manifest, err := manifests.Get(ctx, d)
	var gone distribution.ErrManifestUnknownRevision
	if errors.As(err, &gone) { // Its content was damaged once, and removed.
		return nil
	}
	if err != nil {
		return fmt.Errorf("manifest %s of %q: %w", d, name, err)
	}
	for _, part := range manifest.References() {
		r.add(part.Digest, name)
	}
	return nil
}
