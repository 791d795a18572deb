package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

func TestManagerCredentials(t *testing.T) {
	const api = "http://127.0.0.1:8800/metal/v1"
	for name, tt := range map[string]struct {
		manager Credentials
		apiURL  string
		problem string
	}{
		"complete":                    {manager: Credentials{Token: "t", URL: api}},
		"the same URL in the cluster": {manager: Credentials{Token: "t", URL: api}, apiURL: api},
		"another URL in the cluster":  {manager: Credentials{Token: "t", URL: api}, apiURL: "http://elsewhere", problem: "The manager's credentials are not for spec.apiURL"},
		"no token":                    {manager: Credentials{URL: api}, problem: "No credentials: set spec.credentialsRef"},
		"no URL":                      {manager: Credentials{Token: "t"}, problem: "No Packet API: set spec.apiURL"},
		"an invalid URL":              {manager: Credentials{Token: "t", URL: "metal"}, problem: "invalid URL of the Packet API"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Source{Default: tt.manager}
			c, err := s.For(t.Context(), &infrav1.PacketCluster{Spec: infrav1.PacketClusterSpec{APIURL: tt.apiURL}})
			problem, found := IsProblem(err)
			if found != (tt.problem != "") || !strings.HasPrefix(problem, tt.problem) || (c == nil) != found {
				t.Errorf("client %v, problem %q, want %q", c, problem, tt.problem)
			}
			if strings.Contains(problem, "elsewhere") {
				t.Errorf("problem %q names a URL of the user", problem)
			}
		})
	}
}

func TestClientsAreSharedPerURLAndToken(t *testing.T) {
	s := &Source{Default: Credentials{Token: "t", URL: "https://a"}}
	first, err := s.For(t.Context(), &infrav1.PacketCluster{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.For(t.Context(), &infrav1.PacketCluster{}); err != nil || again != first {
		t.Errorf("another client for the same token: %v", err)
	}
	s.Default.Token = "rotated"
	if other, err := s.For(t.Context(), &infrav1.PacketCluster{}); err != nil || other == first || other.Token != "rotated" {
		t.Errorf("the client of the old token is used: %v", err)
	}
}

func TestIsProblem(t *testing.T) {
	if problem, ok := IsProblem(fmt.Errorf("connecting: %w", &Error{Problem: "P"})); !ok || problem != "P" {
		t.Errorf("problem %q, %t", problem, ok)
	}
	if problem, ok := IsProblem(errors.New("timeout")); ok || problem != "" {
		t.Errorf("problem %q, %t", problem, ok)
	}
}
