package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	metalcli "github.com/drover-dev/drover/internal/cli/metal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/plane"
)

// metalFlag is --metal: the driver of machines for the plane.
type metalFlag struct{ asked string }

func metalChoices() []string {
	return slices.Concat([]string{service.Auto}, metalcli.DriverNames(), []string{service.None})
}

func (f *metalFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.asked, "metal", "", "`driver` of machines for clusters that name no other Packet API: "+strings.Join(metalChoices(), ", ")+
		"; auto keeps the driver of metal's home, or uses local if this host supports it (default $DROVER_METAL, or auto)")
	_ = cmd.RegisterFlagCompletionFunc("metal", cobra.FixedCompletions(metalChoices(), cobra.ShellCompDirectiveNoFileComp))
}

// complete applies defaults and rejects unsupported drivers before anything is created.
func (f *metalFlag) complete(ctx context.Context) error {
	f.asked = cmp.Or(f.asked, os.Getenv("DROVER_METAL"), service.Auto)
	if !slices.Contains(metalChoices(), f.asked) {
		return ui.Usagef("--metal %q is not a driver: use one of %s", f.asked, strings.Join(metalChoices(), ", "))
	}
	if f.asked == service.Auto || f.asked == service.None {
		return nil
	}
	home, err := metalHome()
	if err != nil {
		return err
	}
	_, err = f.choose(ctx, home)
	return err
}

func metalHome() (metal.Home, error) {
	dir, err := filepath.Abs(metal.DefaultHome())
	return metal.Home{Dir: dir}, err
}

func (f *metalFlag) choose(ctx context.Context, home metal.Home) (string, error) {
	return service.Choose(ctx, home, f.asked, func(driver string) error { return metalcli.Usable(driver, home) })
}

// finder returns how the plane finds machines, nil if it runs without.
func (f *metalFlag) finder() func(context.Context) (plane.PacketAPI, error) {
	if f.asked == service.None {
		return nil
	}
	return f.find
}

// find starts metal and returns its API. Credentials in the environment take precedence.
func (f *metalFlag) find(ctx context.Context) (plane.PacketAPI, error) {
	given := plane.PacketAPI{Credentials: access.Credentials{URL: os.Getenv(access.URLKey), Token: os.Getenv(access.TokenKey), CA: os.Getenv(access.CAKey)}}
	if f.asked == service.Auto && given.Token != "" {
		return given, nil
	}
	home, err := metalHome()
	if err != nil {
		return plane.PacketAPI{}, err
	}
	driver, err := f.choose(ctx, home)
	var none *service.NoneError
	if errors.As(err, &none) {
		return plane.PacketAPI{}, &plane.SkippedError{Reason: none.Error()}
	}
	if err != nil {
		return plane.PacketAPI{}, err
	}
	e, err := service.Ensure(ctx, home, driver)
	if err != nil && f.asked == service.Auto && ctx.Err() == nil {
		return plane.PacketAPI{}, &plane.SkippedError{Reason: err.Error()}
	}
	if err != nil {
		return plane.PacketAPI{}, err
	}
	return packetAPI(home, e)
}

func packetAPI(home metal.Home, e metal.Endpoint) (plane.PacketAPI, error) {
	token, err := home.Token(e.Project)
	if err != nil {
		return plane.PacketAPI{}, err
	}
	ca, err := e.TrustedCA()
	return plane.PacketAPI{
		Credentials: access.Credentials{URL: e.SecureAPIURL(), Token: token, CA: string(ca)}, Project: e.Project,
	}, err
}

// join connects a running plane to metal, which may have been stopped since.
func (f *metalFlag) join(ctx context.Context, io *ui.IO, home plane.Home) error {
	if f.asked == service.None {
		return nil
	}
	was := f.running(ctx)
	found, err := f.find(ctx)
	var skipped *plane.SkippedError
	if errors.As(err, &skipped) {
		fmt.Fprintln(io.Err, skipped.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	if now := f.running(ctx); was == nil && now != nil {
		fmt.Fprintf(io.Err, "Started metal with %s machines.\n", now.Driver)
	}
	return plane.UsePacketAPI(ctx, home, found)
}

// running returns the endpoint of metal, nil if it isn't running or not wanted.
func (f *metalFlag) running(ctx context.Context) *metal.Endpoint {
	home, err := metalHome()
	if err != nil || f.asked == service.None {
		return nil
	}
	e, ok := service.Running(ctx, home)
	if !ok {
		return nil
	}
	return &e
}

// printMetalRuns points out that metal outlives the plane.
func printMetalRuns(ctx context.Context, io *ui.IO) {
	home, err := metalHome()
	if err != nil {
		return
	}
	s, err := service.ReadStatus(ctx, home)
	if err != nil || !s.Running {
		return
	}
	machines := "its machines"
	if s.Machines != nil {
		machines = metalcli.Count(*s.Machines)
	}
	fmt.Fprintf(io.Err, "Metal keeps running with %s: `drover metal stop` stops it, `drover metal purge` deletes it with its machines.\n", machines)
}
