// Package gittest runs Git servers for tests: git http-backend behind TLS and basic authentication,
// and OpenSSH with git-shell, as people run them without a forge. Servers listen on the loopback
// interface, keep everything in a temporary directory and end with the test.
//
// It requires Git and OpenSSH's server, which Debian has in git and openssh-server. Start with
// NewHTTPS and NewSSH.
package gittest
