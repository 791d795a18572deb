package git

import "strings"

// Canonical returns a URL in the one form that all spellings of a repository have in common: the
// case of the host, the default port, the default user and a trailing ".git" don't matter. Paths
// are compared as they are, so different texts may still stand for one repository, but equal texts
// never for two.
func Canonical(url string) (string, error) {
	at, err := parseAddress(url)
	if err != nil {
		return "", err
	}
	at.host = strings.ToLower(at.host)
	if at.port == defaultPort(at.scheme) {
		at.port = ""
	}
	path := strings.TrimSuffix(strings.TrimRight(at.path, "/"), ".git")
	if at.scheme != schemeSSH {
		return at.scheme + "://" + at.peer() + path, nil
	}
	if !strings.HasPrefix(path, "/") { // relative to the home of the user
		path = "/~/" + strings.TrimPrefix(path, "~/")
	}
	return at.scheme + "://" + at.login() + "@" + at.peer() + path, nil
}

func defaultPort(scheme string) string {
	switch scheme {
	case schemeSSH:
		return defaultSSHPort
	case schemeHTTP:
		return "80"
	default:
		return "443"
	}
}
