package git

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
	schemeSSH   = "ssh"

	defaultUser    = "git"
	defaultSSHPort = "22"
)

// address is a parsed repository URL. It never contains a password.
type address struct {
	scheme, user, host, port string
	// path is what the server calls the repository. With SSH it is absolute, or relative to the home
	// of the user.
	path string
}

// parseAddress reads a URL, or the short form that SSH has: git@host:path. Its errors don't quote
// the text, which may contain a password.
func parseAddress(raw string) (address, error) {
	switch {
	case raw == "":
		return address{}, errors.New("url is required")
	case strings.ContainsFunc(raw, isUnprintable):
		return address{}, errors.New("url contains spaces or control characters")
	case strings.Contains(raw, "://"):
		return parseURL(raw)
	default:
		return parseShort(raw)
	}
}

func isUnprintable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

func parseURL(raw string) (address, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return address{}, errors.New("url is malformed")
	}
	a := address{scheme: u.Scheme, host: u.Hostname(), port: u.Port(), path: u.Path}
	if u.User != nil {
		if err := a.setUser(u.User); err != nil {
			return address{}, err
		}
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return address{}, errors.New("url has a query or a fragment")
	}
	if a.scheme == schemeSSH && strings.HasPrefix(a.path, "/~") {
		a.path = a.path[1:]
	}
	if err := a.check(); err != nil {
		return address{}, err
	}
	return a, nil
}

// setUser accepts a user name for SSH, where it is part of the address. Everything else is a
// credential.
func (a *address) setUser(user *url.Userinfo) error {
	if _, password := user.Password(); password || a.scheme != schemeSSH {
		return errors.New("url contains credentials; provide them separately")
	}
	a.user = user.Username()
	return nil
}

// parseShort reads user@host:path, in which the host may be an IPv6 address in brackets.
func parseShort(raw string) (address, error) {
	a := address{scheme: schemeSSH}
	rest := raw
	if user, after, ok := strings.Cut(raw, "@"); ok && !strings.ContainsAny(user, ":/") {
		a.user, rest = user, after
	}
	end := strings.Index(rest, ":")
	if strings.HasPrefix(rest, "[") {
		end = strings.Index(rest, "]:") + 1
	}
	if end <= 0 {
		return address{}, errors.New("url has no scheme; use https://, ssh:// or user@host:path")
	}
	a.host, a.path = strings.Trim(rest[:end], "[]"), rest[end+1:]
	if err := a.check(); err != nil {
		return address{}, err
	}
	return a, nil
}

func (a *address) check() error {
	if !slices.Contains([]string{schemeHTTP, schemeHTTPS, schemeSSH}, a.scheme) {
		return errors.New("url has an unsupported scheme; use https:// or ssh://")
	}
	switch {
	case a.host == "":
		return errors.New("url has no host")
	case strings.HasPrefix(a.host, "-"), strings.HasPrefix(a.user, "-"), strings.HasPrefix(a.path, "-"):
		return errors.New("url has a host, user or path that starts with a dash")
	case strings.ContainsAny(a.host, "/@%") || strings.ContainsAny(a.user, ":/@"):
		return errors.New("url is malformed")
	case strings.Trim(a.path, "/~") == "":
		return errors.New("url has no path")
	case strings.ContainsFunc(a.path, unicode.IsControl): // An escape of the URL may stand for one.
		return errors.New("url contains spaces or control characters")
	case a.scheme == schemeHTTP && !a.isLoopback():
		return errors.New("url is not encrypted; use https:// or ssh://")
	}
	return nil
}

func (a *address) isLoopback() bool {
	if a.host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(a.host)
	return err == nil && ip.Unmap().IsLoopback()
}

// dial returns host and port for a TCP connection to an SSH server.
func (a *address) dial() string {
	port := a.port
	if port == "" {
		port = defaultSSHPort
	}
	return net.JoinHostPort(a.host, port)
}

// login returns the user of an SSH server.
func (a *address) login() string {
	if a.user == "" {
		return defaultUser
	}
	return a.user
}

// url returns the address of an HTTP server.
func (a *address) url() string {
	u := url.URL{Scheme: a.scheme, Host: a.peer(), Path: strings.TrimSuffix(a.path, "/")}
	return u.String()
}

// peer returns the host as it appears in a URL, with its port if it has one.
func (a *address) peer() string {
	host := a.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.port == "" {
		return host
	}
	return fmt.Sprintf("%s:%s", host, a.port)
}
