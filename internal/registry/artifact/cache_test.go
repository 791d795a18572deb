package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func newCache(t *testing.T, dir string, limit int64) (*cache, *clocktesting.FakePassiveClock) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	c := &cache{dir: dir, max: limit, clock: clock}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	return c, clock
}

// has reports whether the content is cached, without using it.
func (c *cache) has(content string) bool {
	_, err := os.Stat(c.path(contentDigest([]byte(content))))
	return err == nil
}

func putAll(t *testing.T, c *cache, contents ...string) {
	t.Helper()
	for _, content := range contents {
		if err := c.put(contentDigest([]byte(content)), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeastRecentlyUsedFileIsDeletedFirst(t *testing.T) {
	c, clock := newCache(t, t.TempDir(), 30)
	for _, content := range []string{"first 10 b", "second 10 ", "third 10 b"} {
		putAll(t, c, content)
		clock.SetTime(clock.Now().Add(time.Second))
	}
	if data, err := c.get(contentDigest([]byte("first 10 b"))); err != nil || string(data) != "first 10 b" {
		t.Fatalf("read %q, %v", data, err)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	putAll(t, c, "fourth ten")
	for content, kept := range map[string]bool{"first 10 b": true, "second 10 ": false, "third 10 b": true, "fourth ten": true} {
		if c.has(content) != kept {
			t.Errorf("%q is cached: %v", content, !kept)
		}
	}
}

func TestFileLargerThanTheCacheIsNotCached(t *testing.T) {
	c, _ := newCache(t, t.TempDir(), 10)
	putAll(t, c, "small", "much too large")
	if !c.has("small") || c.has("much too large") {
		t.Error("the large file was cached, or the small one deleted")
	}
}

func TestDamagedFileIsDeleted(t *testing.T) {
	c, _ := newCache(t, t.TempDir(), 100)
	putAll(t, c, "content")
	digest := contentDigest([]byte("content"))
	if err := os.WriteFile(c.path(digest), []byte("contenX"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := c.get(digest); data != nil || !errors.Is(err, ErrInvalid) {
		t.Errorf("read %q, %v", data, err)
	}
	if data, err := c.get(digest); data != nil || err != nil {
		t.Errorf("then read %q, %v", data, err)
	}
}

func TestCachesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	one, clock := newCache(t, dir, 20)
	putAll(t, one, "of the one")
	other, otherClock := newCache(t, dir, 20)
	otherClock.SetTime(clock.Now().Add(time.Minute))
	putAll(t, other, "the other ")
	if data, _ := other.get(contentDigest([]byte("of the one"))); data == nil {
		t.Error("the file of one cache is missing in the other")
	}
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	putAll(t, one, "of the 1st")
	if one.has("the other ") == one.has("of the one") {
		t.Error("the directory exceeds the limit")
	}
}

func TestCacheIsReadableOnlyByItsOwner(t *testing.T) {
	c, _ := newCache(t, filepath.Join(t.TempDir(), "new"), 100)
	putAll(t, c, "content")
	for path, want := range map[string]fs.FileMode{
		c.dir: 0o700, c.files(): 0o700, c.path(contentDigest([]byte("content"))): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", path, info.Mode().Perm(), err)
		}
	}
}

func TestLeftoverOfKilledWriterIsDeleted(t *testing.T) {
	c, clock := newCache(t, t.TempDir(), 100)
	left := filepath.Join(c.files(), ".half.123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	putAll(t, c, "one")
	if _, err := os.Stat(left); err != nil {
		t.Error("the file of an active writer was deleted")
	}
	clock.SetTime(clock.Now().Add(2 * abandonedAfter))
	putAll(t, c, "two")
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was not deleted: %v", err)
	}
}
