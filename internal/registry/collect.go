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
	// allWrites is larger than the possible number of concurrent writes.
	allWrites = 1 << 30
	// writesTimeout is how long Collect waits for running writes.
	writesTimeout = time.Minute
	// uploadAge is the minimum age of an abandoned upload.
	uploadAge = 24 * time.Hour
	// DefaultAge is longer than a push takes between its first blob and its manifest.
	DefaultAge = time.Hour
)

// Collected reports what Collect deleted.
type Collected struct {
	// Removed counts unreferenced blobs, and Bytes is their size.
	Removed int   `json:"removed"`
	Bytes   int64 `json:"bytes"`
	// Uploads counts abandoned uploads.
	Uploads int `json:"uploads"`
	// Damaged lists content that didn't match its digest and must be pushed again.
	Damaged []Damaged `json:"damaged,omitempty"`
}

// Damaged is the digest of damaged content and the repositories that refer to it.
type Damaged struct {
	Digest       string   `json:"digest"`
	Repositories []string `json:"repositories,omitempty"`
}

func (s *Server) serveCollect(w http.ResponseWriter, r *http.Request) {
	age, err := time.ParseDuration(r.FormValue("age"))
	if err != nil || age < 0 || r.Method != http.MethodPost {
		http.Error(w, "want a POST request with an age such as ?age=1h", http.StatusBadRequest)
		return
	}
	done, err := s.Collect(r.Context(), age)
	if err != nil {
		s.log.Error("Deleting unreferenced content failed", "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(done)
}

// Collect deletes unreferenced content that is older than age, abandoned uploads and damaged
// content. Reads continue while it runs; writes wait for its last phase.
func (s *Server) Collect(ctx context.Context, age time.Duration) (Collected, error) {
	found, err := s.store.survey(ctx)
	if err != nil {
		return Collected{}, fmt.Errorf("reading content: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, writesTimeout)
	defer cancel()
	if err := s.writes.Acquire(wait, allWrites); err != nil {
		return Collected{}, fmt.Errorf("timed out after %s waiting for running uploads", writesTimeout)
	}
	defer s.writes.Release(allWrites)
	return s.store.collect(ctx, found, time.Now().Add(-age))
}

// content describes a blob or manifest on disk.
type content struct {
	size    int64
	since   time.Time
	damaged bool
}

// survey reads and verifies all content.
func (s *store) survey(ctx context.Context) (map[digest.Digest]content, error) {
	found := map[digest.Digest]content{}
	err := s.namespace.Blobs().Enumerate(ctx, func(d digest.Digest) error {
		info, err := s.driver.Stat(ctx, contentFile(d))
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		intact, err := s.intact(ctx, d)
		found[d] = content{size: info.Size(), since: info.ModTime(), damaged: !intact}
		return err
	})
	if isMissing(err) { // the registry is empty
		err = nil
	}
	return found, err
}

// intact reports whether content matches its digest.
func (s *store) intact(ctx context.Context, d digest.Digest) (bool, error) {
	file, err := s.driver.Reader(ctx, contentFile(d), 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	sum, err := d.Algorithm().FromReader(file)
	return sum == d, err
}

// references maps content to the repositories that refer to it.
type references map[digest.Digest]map[string]bool

func (r references) add(d digest.Digest, repository string) {
	if r[d] == nil {
		r[d] = map[string]bool{}
	}
	r[d][repository] = true
}

// collect deletes unreferenced and damaged content. The references of a damaged manifest are
// unknown, so if there is one, unreferenced content stays until the next run.
func (s *store) collect(ctx context.Context, found map[digest.Digest]content, before time.Time) (Collected, error) {
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
	done.Uploads, err = s.purgeUploads(ctx, earlier(before, time.Now().Add(-uploadAge)))
	return done, err
}

// purgeUploads deletes uploads that started before a time.
func (s *store) purgeUploads(ctx context.Context, before time.Time) (int, error) {
	if _, err := s.driver.Stat(ctx, repositoriesDir); isMissing(err) { // the registry is empty
		return 0, nil
	}
	purged, errs := storage.PurgeUploads(ctx, s.driver, before, true)
	return len(purged), errors.Join(errs...)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// references reads all manifests. lost reports whether one of them is damaged.
func (s *store) references(ctx context.Context, found map[digest.Digest]content) (used references, lost bool, err error) {
	used = references{}
	repositories, ok := s.namespace.(distribution.RepositoryEnumerator)
	if !ok {
		return nil, false, errors.New("the storage driver cannot list repositories")
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
			return fmt.Errorf("the storage driver cannot list the manifests of %q", name)
		}
		err = list.Enumerate(ctx, func(d digest.Digest) error {
			used.add(d, name)
			if p, ok := found[d]; ok && p.damaged {
				lost = true
				return nil
			}
			return used.follow(ctx, manifests, d, name)
		})
		if isMissing(err) { // a repository that has only uploads
			return nil
		}
		return err
	})
	if isMissing(err) {
		err = nil
	}
	return used, lost, err
}

// follow adds the content that a manifest refers to.
func (r references) follow(ctx context.Context, manifests distribution.ManifestService, d digest.Digest, name string) error {
	manifest, err := manifests.Get(ctx, d)
	var gone distribution.ErrManifestUnknownRevision
	if errors.As(err, &gone) { // an earlier run deleted the damaged manifest
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading manifest %s of %q: %w", d, name, err)
	}
	for _, part := range manifest.References() {
		r.add(part.Digest, name)
	}
	return nil
}
