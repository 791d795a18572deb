package git

import (
	"context"
	"errors"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestEveryTransportReadsAndWrites(t *testing.T) {
	ssh := func(kind, passphrase string) func(t *testing.T) (*gittest.Repository, Remote) {
		return func(t *testing.T) (*gittest.Repository, Remote) {
			_, repository, remote := overSSH(t, kind, passphrase)
			return repository, remote
		}
	}
	for name, start := range map[string]func(t *testing.T) (*gittest.Repository, Remote){
		"https with a token and a CA": func(t *testing.T) (*gittest.Repository, Remote) {
			_, repository, remote := overHTTPS(t)
			return repository, remote
		},
		"ssh with an ed25519 key":        ssh("ed25519", ""),
		"ssh with an ecdsa key":          ssh("ecdsa", ""),
		"ssh with an rsa key":            ssh("rsa", ""),
		"ssh with a key in a passphrase": ssh("ed25519", "open sesame"),
	} {
		t.Run(name, func(t *testing.T) {
			repository, remote := start(t)
			first := repository.Commit(gittest.Branch, map[string]string{"README": "hello\n", "apps/a.yaml": "a: 1 # one\n"})
			r := open(t, remote, Options{})
			result := mustUpdate(t, r, set(map[string]string{"apps/b.yaml": "b\n"}))
			if !result.Changed || result.Attempts != 1 || result.Commit != repository.Tip(gittest.Branch) {
				t.Errorf("result %+v, tip %s", result, repository.Tip(gittest.Branch))
			}
			if parent := repository.Git("rev-parse", result.Commit+"^"); parent != first {
				t.Errorf("parent %s, want %s", parent, first)
			}
			id, err := r.TipID(t.Context())
			if err != nil || id != result.Commit {
				t.Errorf("TipID %q, error %v", id, err)
			}
			tip, err := r.Tip(t.Context())
			if err != nil || tip.Commit != result.Commit || tip.Empty {
				t.Fatalf("tip %+v, error %v", tip, err)
			}
			want := map[string]string{"README": "hello\n", "apps/a.yaml": "a: 1 # one\n", "apps/b.yaml": "b\n"}
			if diff := cmp.Diff(want, contents(t, tip.FS())); diff != "" {
				t.Error(diff)
			}
			repository.Git("fsck", "--strict")
		})
	}
}

func TestFailuresHaveTypes(t *testing.T) {
	_, stranger := gittest.NewKey(t, "ed25519", "")
	for name, test := range map[string]struct {
		start func(t *testing.T) Remote
		want  error
		says  string
	}{
		"wrong password": {start: func(t *testing.T) Remote {
			_, _, remote := overHTTPS(t)
			remote.Credentials.Password = "wrong-password-of-tests"
			return remote
		}, want: &AuthenticationError{}, says: "check the credentials"},
		"no password": {start: func(t *testing.T) Remote {
			_, _, remote := overHTTPS(t)
			remote.Credentials = Credentials{CA: remote.Credentials.CA}
			return remote
		}, want: &AuthenticationError{}},
		"wrong CA": {start: func(t *testing.T) Remote {
			_, _, remote := overHTTPS(t)
			other, _, _ := overHTTPS(t)
			remote.Credentials.CA = other.CA
			return remote
		}, want: &IdentityError{}, says: "its CA"},
		"unknown repository over https": {start: func(t *testing.T) Remote {
			_, _, remote := overHTTPS(t)
			remote.URL += "x"
			return remote
		}, want: &NotFoundError{}, says: "check the URL"},
		"unknown repository over ssh": {start: func(t *testing.T) Remote {
			_, _, remote := overSSH(t, "ed25519", "")
			remote.URL += "x"
			return remote
		}, want: &NotFoundError{}, says: "does not appear to be a git repository"},
		"unknown host key": {start: func(t *testing.T) Remote {
			_, _, remote := overSSH(t, "ed25519", "")
			remote.Credentials.KnownHosts = append([]byte("example.com "), stranger...)
			return remote
		}, want: &IdentityError{}, says: "add its key to the known hosts"},
		"changed host key": {start: func(t *testing.T) Remote {
			_, _, remote := overSSH(t, "ed25519", "")
			host, _, _ := strings.Cut(string(remote.Credentials.KnownHosts), " ")
			remote.Credentials.KnownHosts = []byte(host + " " + string(stranger))
			return remote
		}, want: &IdentityError{}, says: "differs from the known one"},
		"wrong key": {start: func(t *testing.T) Remote {
			_, _, remote := overSSH(t, "ed25519", "")
			remote.Credentials.PrivateKey, _ = gittest.NewKey(t, "ed25519", "")
			return remote
		}, want: &AuthenticationError{}},
		"https server down": {start: func(t *testing.T) Remote {
			server, _, remote := overHTTPS(t)
			server.Stop()
			return remote
		}, want: &UnreachableError{}, says: "connection refused"},
		"ssh server down": {start: func(t *testing.T) Remote {
			server, _, remote := overSSH(t, "ed25519", "")
			server.Stop()
			return remote
		}, want: &UnreachableError{}, says: "connection refused"},
		"https server with errors": {start: func(t *testing.T) Remote {
			server, _, remote := overHTTPS(t)
			server.Inject(respond(http.StatusBadGateway, "try later"))
			return remote
		}, want: &UnreachableError{}, says: "502"},
		"a web page": {start: func(t *testing.T) Remote {
			server, _, remote := overHTTPS(t)
			server.Inject(respond(http.StatusOK, "<html>Welcome, token "+gittest.Password+"</html>"))
			return remote
		}, want: &ProtocolError{}, says: "check the URL"},
		"garbage": {start: func(t *testing.T) Remote {
			server, _, remote := overHTTPS(t)
			server.Inject(respond(http.StatusOK, strings.Repeat("\xff\x00\x1b[31m", 1000)))
			return remote
		}, want: &ProtocolError{}},
		"something else on the ssh port": {start: func(t *testing.T) Remote {
			_, _, remote := overSSH(t, "ed25519", "")
			return elsewhere(t, remote, "220 mail.example.com ESMTP\r\n")
		}, want: &UnreachableError{}},
	} {
		t.Run(name, func(t *testing.T) {
			remote := test.start(t)
			r := open(t, remote, Options{Limits: Limits{Timeout: 20 * time.Second}})
			for what, call := range map[string]func() error{
				"TipID":  func() error { _, err := r.TipID(t.Context()); return err },
				"Tip":    func() error { _, err := r.Tip(t.Context()); return err },
				"Update": func() error { _, err := r.Update(t.Context(), Message{Subject: "x"}, set(nil)); return err },
			} {
				err := call()
				if err == nil || !sameType(err, test.want) {
					t.Fatalf("%s: error %T %v, want %T", what, err, err, test.want)
				}
				if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), remote.URL) || len(err.Error()) > 1000 {
					t.Errorf("%s: error %q doesn't name %q and %q", what, err, test.says, remote.URL)
				}
				mustNotLeak(t, err, remote.Credentials)
			}
		})
	}
}

// sameType reports whether an error has the type of another one.
func sameType(err, want error) bool { return reflect.TypeOf(err) == reflect.TypeOf(want) }

func respond(status int, body string) gittest.Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// elsewhere replaces the server of a remote by one that greets its clients and hangs up.
func elsewhere(t *testing.T, remote Remote, greeting string) Remote {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(greeting))
			_ = conn.Close()
		}
	}()
	remote.URL = "ssh://git@" + listener.Addr().String() + "/fleet.git"
	return remote
}

func TestSilentServersEndWithTheContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // It accepts connections and never answers.
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, _, remote := overSSH(t, "ed25519", "")
	remote.URL = "ssh://git@" + listener.Addr().String() + "/fleet.git"
	https := Remote{URL: "https://" + listener.Addr().String() + "/fleet.git", Branch: "main"}
	for _, remote := range []Remote{remote, https} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := open(t, remote, Options{}).Tip(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v", remote.URL, err)
		}
		_, err = open(t, remote, Options{Limits: Limits{Timeout: 100 * time.Millisecond}}).Tip(t.Context())
		if !sameType(err, &UnreachableError{}) {
			t.Errorf("%s: error %T %v", remote.URL, err, err)
		}
	}
}
