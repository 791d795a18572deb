package plane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/plane"
)

func TestMachineDriver(t *testing.T) {
	for name, tt := range map[string]struct{ flag, environment, want, problem string }{
		"nothing is said":                      {want: service.Auto},
		"the environment":                      {environment: "none", want: service.None},
		"the flag precedes the environment":    {flag: "auto", environment: "none", want: service.Auto},
		"an unknown driver in the environment": {environment: "bogus", problem: `--metal "bogus" is not a driver`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DROVER_METAL_HOME", filepath.Join(t.TempDir(), "metal"))
			t.Setenv("DROVER_METAL", tt.environment)
			f := &metalFlag{asked: tt.flag}
			err := f.complete(t.Context())
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got error %v, want %q", err, tt.problem)
				}
				return
			}
			if err != nil || f.asked != tt.want {
				t.Errorf("got %q, %v; want %q", f.asked, err, tt.want)
			}
		})
	}
}

func TestMetalNoneStartsNoService(t *testing.T) {
	f := &metalFlag{asked: service.None}
	if f.finder() != nil || f.running(t.Context()) != nil {
		t.Error("got a search for machines, want none")
	}
	if err := f.join(t.Context(), nil, plane.Home{}); err != nil {
		t.Error(err)
	}
}

func TestPacketAPIFromTheEnvironmentIsUsed(t *testing.T) {
	t.Setenv("DROVER_METAL_HOME", filepath.Join(t.TempDir(), "metal"))
	t.Setenv("METAL_API_URL", "https://packet.example/metal/v1")
	t.Setenv("PACKET_API_KEY", "token")
	got, err := (&metalFlag{asked: service.Auto}).find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := plane.PacketAPI{}
	want.URL, want.Token = "https://packet.example/metal/v1", "token"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
}

// TestManagerKnowsTheCertificateOfMetal: any user of the host may listen at the port of a service
// that has stopped, but nobody else has its certificate.
func TestManagerKnowsTheCertificateOfMetal(t *testing.T) {
	home := metal.Home{Dir: t.TempDir()}
	for file, content := range map[string]string{home.TokenFile("p"): "secret", home.CAFile(): "ca"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	e := metal.Endpoint{URL: "http://127.0.0.1:1", Machines: "https://198.18.0.1:1", CA: home.CAFile(), Project: "p"}
	got, err := packetAPI(home, e)
	want := access.Credentials{URL: "https://198.18.0.1:1/metal/v1", Token: "secret", CA: "ca"}
	if err != nil || got.Credentials != want {
		t.Errorf("the manager gets %+v (%v)", got.Credentials, err)
	}
}

func TestMetalOptions(t *testing.T) {
	choices := metalChoices()
	if choices[0] != service.Auto || choices[len(choices)-1] != service.None || len(choices) < 4 {
		t.Errorf("choices are %v", choices)
	}
}
