package plane

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/access"
)

func packetPlane(t *testing.T) *Plane {
	t.Helper()
	h := Home{Dir: t.TempDir()}
	if err := h.makeRoot(); err != nil {
		t.Fatal(err)
	}
	return &Plane{home: h, log: slog.New(slog.DiscardHandler)}
}

func TestManagerGetsTheDiscoveredPacketAPI(t *testing.T) {
	found := PacketAPI{Credentials: access.Credentials{URL: "http://127.0.0.1:8800/metal/v1", Token: "secret", CA: "PEM"}, Project: "p"}
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		find   func(context.Context) (PacketAPI, error)
		want   PacketAPI
		events []string
		err    error
	}{
		"no finder":    {nil, PacketAPI{}, nil, nil},
		"one is found": {func(context.Context) (PacketAPI, error) { return found, nil }, found, []string{"started", "done"}, nil},
		"there is none": {func(context.Context) (PacketAPI, error) {
			return PacketAPI{}, &SkippedError{"no root"}
		}, PacketAPI{}, []string{"started", "skipped no root"}, nil},
		"something fails": {func(context.Context) (PacketAPI, error) { return PacketAPI{}, boom }, PacketAPI{}, []string{"started", "failed boom"}, boom},
	} {
		t.Run(name, func(t *testing.T) {
			p := packetPlane(t)
			// What was used before does not count.
			if err := p.home.writePacket(PacketAPI{Credentials: access.Credentials{URL: "http://elsewhere", Token: "old"}}); err != nil {
				t.Fatal(err)
			}
			var events []string
			err := p.findPacket(t.Context(), tt.find)(func(e Event) { events = append(events, strings.TrimSpace(e.Status+" "+e.Error)) })
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.events, events); diff != "" {
				t.Error(diff)
			}
			env := p.managerEnvironment()
			want := slices.Concat(os.Environ(), []string{"METAL_API_URL=" + tt.want.URL, "PACKET_API_KEY=" + tt.want.Token, "METAL_API_CA=" + tt.want.CA})
			if tt.want == (PacketAPI{}) {
				want = os.Environ()
			}
			if !slices.Equal(env, want) || p.packet != tt.want {
				t.Errorf("the manager gets %v, recorded as %+v", env[len(env)-3:], p.packet)
			}
		})
	}
}

func TestPacketAPIFileIsPrivate(t *testing.T) {
	p := packetPlane(t)
	if err := p.home.writePacket(PacketAPI{Credentials: access.Credentials{Token: "secret"}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(p.home.packetFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
}
