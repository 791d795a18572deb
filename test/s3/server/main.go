// Program server is an S3-compatible server for tests of storages: it verifies signatures. It is a
// module of its own, so that nothing of it becomes a dependency of Drover. Run it with a directory
// for buckets, an address, and the files of a certificate and its key; the account is in the
// environment.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: server DIR ADDRESS CERT KEY")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dirs := map[string]string{"buckets": "", "attributes": ""}
	for name := range dirs {
		dirs[name] = filepath.Join(args[0], name)
		if err := os.MkdirAll(dirs[name], 0o700); err != nil {
			return err
		}
	}
	attributes, err := meta.NewSideCar(dirs["attributes"])
	if err != nil {
		return err
	}
	buckets, err := posix.New(dirs["buckets"], attributes, posix.PosixOpts{SideCarDir: dirs["attributes"], NewDirPerm: 0o700})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, buckets, &embedgw.Config{
		RootUserAccess: os.Getenv("AWS_ACCESS_KEY_ID"), RootUserSecret: os.Getenv("AWS_SECRET_ACCESS_KEY"), Region: os.Getenv("AWS_REGION"),
		Ports: []string{args[1]}, CertFile: args[2], KeyFile: args[3],
		MaxConnections: 100, MaxRequests: 100, MultipartMaxParts: 10000, Quiet: true, KeepAlive: true,
	})
}
