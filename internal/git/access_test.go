package git

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestCheckPushChangesNothing(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*gittest.Repository, Remote){
		"https": func(t *testing.T) (*gittest.Repository, Remote) { _, r, remote := overHTTPS(t); return r, remote },
		"ssh": func(t *testing.T) (*gittest.Repository, Remote) {
			_, r, remote := overSSH(t, "ed25519", "")
			return r, remote
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository, remote := start(t)
			r := open(t, remote, Options{})
			if err := r.CheckPush(t.Context()); err != nil {
				t.Errorf("an empty repository: %v", err)
			}
			tip := repository.Commit(gittest.Branch, map[string]string{"README": "hello\n"})
			if err := r.CheckPush(t.Context()); err != nil {
				t.Errorf("a branch: %v", err)
			}
			if got := repository.Tip(gittest.Branch); got != tip {
				t.Errorf("the branch moved from %s to %s", tip, got)
			}
		})
	}
}

func TestCheckPushNamesAProtectedBranch(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"README": "hello\n"})
	repository.Hook("update", `[ "$1" = refs/heads/main ] && echo "main is protected" >&2 && exit 1; exit 0`)
	err := open(t, remote, Options{}).CheckPush(t.Context())
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.Branch != gittest.Branch || !strings.Contains(err.Error(), "main is protected") {
		t.Errorf("error %v", err)
	}
}

func TestCheckPushReportsCredentialsThatMayOnlyRead(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	for name, branch := range map[string]string{"a branch": gittest.Branch, "a branch that doesn't exist": "other"} {
		repository.Commit(gittest.Branch, map[string]string{"README": "hello\n"})
		repository.Git("config", "http.receivepack", "false")
		remote.Branch = branch
		r := open(t, remote, Options{})
		if _, err := r.TipID(t.Context()); err != nil {
			t.Fatal(err)
		}
		var denied *AuthenticationError
		if err := r.CheckPush(t.Context()); !errors.As(err, &denied) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
