package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkout is a Git repository with only hack/version.sh and its inputs.
type checkout struct {
	*testing.T
	dir string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	c := &checkout{T: t, dir: t.TempDir()}
	script, err := os.ReadFile("../../../hack/version.sh")
	if err != nil {
		t.Fatal(err)
	}
	c.write("hack/version.sh", string(script))
	c.next("v0.1.0")
	return c
}

func (c *checkout) write(name, content string) {
	c.Helper()
	file := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		c.Fatal(err)
	}
}

// next names the next release.
func (c *checkout) next(release string) { c.write("internal/base/version/VERSION", release+"\n") }

// command is independent of the user's configuration of Git, and of a repository above.
func (c *checkout) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	return cmd
}

func (c *checkout) git(args ...string) {
	c.Helper()
	if out, err := c.command("git", args...).CombinedOutput(); err != nil {
		c.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (c *checkout) commit() {
	c.Helper()
	c.git("add", ".")
	c.git("commit", "--quiet", "--allow-empty", "--message", "change")
}

func (c *checkout) version() string {
	c.Helper()
	out, err := c.command("hack/version.sh").Output()
	if err != nil {
		c.Fatalf("hack/version.sh: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func (c *checkout) want(pattern string) string {
	c.Helper()
	v := c.version()
	if !regexp.MustCompile(`^` + pattern + `$`).MatchString(v) {
		c.Errorf("the version is %q, want %s", v, pattern)
	}
	return v
}

func TestCheckoutVersion(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.want(`v0\.1\.0-dev`)
	c.git("init", "--quiet")
	c.want(`v0\.1\.0-dev`)
	c.commit()
	first := c.want(`v0\.1\.0-dev\.0\+g[0-9a-f]{12}`)
	c.commit()
	second := c.want(`v0\.1\.0-dev\.1\+g[0-9a-f]{12}`)
	if !Older(first, second) {
		t.Errorf("%s is not older than %s", first, second)
	}
	c.git("tag", "v0.1.0")
	c.want(`v0\.1\.0`)
	c.next("v0.2.0")
	c.commit()
	if third := c.want(`v0\.2\.0-dev\.0\+g[0-9a-f]{12}`); !Older("v0.1.0", third) {
		t.Errorf("v0.1.0 is not older than %s", third)
	}
	c.git("tag", "v0.2.0-rc.1")
	c.want(`v0\.2\.0-rc\.1`)
	if out, err := c.command("hack/version.sh", "HEAD~2").Output(); err != nil || strings.TrimSpace(string(out)) != first {
		t.Errorf("the first commit is %s, later %s (%v)", first, out, err)
	}
}

func TestModifiedCheckoutVersionDependsOnTheChange(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.git("init", "--quiet")
	c.commit()
	c.git("tag", "v0.1.0-rc.1")
	seen := map[string]bool{}
	for _, change := range []struct{ file, content string }{
		{"new", "one"}, {"new", "two"}, {"other", "two"}, {"internal/base/version/VERSION", "v0.1.0"},
	} {
		c.write(change.file, change.content)
		v := c.want(`v0\.1\.0-dev\.0\+g[0-9a-f]{12}\.dirty\.[0-9a-f]{8}`)
		if seen[v] {
			t.Errorf("two states are both %s", v)
		}
		seen[v] = true
		if again := c.version(); again != v {
			t.Errorf("one state is %s, then %s", v, again)
		}
	}
}

func TestReleasedVersionIsNotReused(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.git("init", "--quiet")
	c.commit()
	c.git("tag", "v0.1.0")
	c.commit()
	out, err := c.command("hack/version.sh").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "v0.1.0 is released") {
		t.Errorf("got %v:\n%s", err, out)
	}
}
