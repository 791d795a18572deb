package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"filippo.io/age"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

// Restore restores the etcd of a cluster on the machines that it has:
//
//	verify ─▶ pause ─▶ stop ─▶ restore every member ─▶ start ─▶ kubelets reconnect ─▶ resume
//
// Until verify and the inspection of all machines have succeeded, nothing is changed. After that,
// an interrupted restore is run again from the beginning. Every member is restored from the same
// snapshot, as a new etcd whose members know each other, so none has to join.
type Restore struct {
	Cluster etcd.Cluster
	Objects client.Client
	Storage storage.Storage
	// Snapshot is the name of a snapshot in the storage.
	Snapshot   string
	Identities []age.Identity
	Host       Host
	// Skip names machines that are lost.
	Skip []string
	// Progress is called with what begins.
	Progress func(string)

	archive  io.ReadSeeker
	close    func()
	key      archive.Key
	machines []*machine
	id       string
}

// Run restores the snapshot and returns its manifest.
func (r *Restore) Run(ctx context.Context) (archive.Manifest, error) {
	r.close = func() {}
	defer func() { r.close() }()
	m, err := r.prepare(ctx)
	if err != nil {
		return m, err
	}
	r.id, err = r.pause(ctx, storage.Name(time.Now()))
	if err != nil {
		return m, err
	}
	if err := r.replace(ctx, m); err != nil {
		return m, fmt.Errorf("%w\nThe control plane of cluster %q is stopped: solve this and run the command again", err, r.Cluster.ObjectKey)
	}
	if err := r.reconnect(ctx); err != nil {
		return m, err
	}
	return m, r.each(isControlPlane, func(one *machine) error {
		_, err := r.run(ctx, one, nil, "finish", r.id, one.etcd.data)
		return err
	})
}

// prepare verifies everything that can be verified before anything changes.
func (r *Restore) prepare(ctx context.Context) (m archive.Manifest, err error) {
	r.Progress("Verifying snapshot " + r.Snapshot)
	if err := r.fetch(ctx); err != nil {
		return m, err
	}
	if m, err = r.verify(ctx); err != nil {
		return m, fmt.Errorf("verifying snapshot %s: %w; nothing was changed", r.Snapshot, err)
	}
	if r.machines, err = r.findMachines(ctx); err != nil {
		return m, fmt.Errorf("%w; nothing was changed", err)
	}
	return m, r.inspectAll(ctx)
}

// verify reads the whole archive: its signature comes last.
func (r *Restore) verify(ctx context.Context) (archive.Manifest, error) {
	_, signers, err := etcd.Authority(ctx, r.Cluster)
	if err != nil {
		return archive.Manifest{}, err
	}
	r.key = archive.Key{Identities: r.Identities, Signers: signers}
	check := etcd.NewCheck()
	m, err := r.read(check)
	if err != nil {
		return m, err
	}
	return m, check.Verify()
}

// read decrypts the archive into w.
func (r *Restore) read(w io.Writer) (archive.Manifest, error) {
	if _, err := r.archive.Seek(0, io.SeekStart); err != nil {
		return archive.Manifest{}, err
	}
	return archive.Read(r.archive, r.key, w)
}

// replace stops all API servers and members, replaces the data and starts them again.
func (r *Restore) replace(ctx context.Context, m archive.Manifest) error {
	r.Progress("Stopping the control plane")
	if err := r.all(isControlPlane, func(one *machine) error { return r.do(ctx, one, "stop") }); err != nil {
		return err
	}
	ahead := strconv.FormatInt(plane.RevisionsAhead(m.Created, time.Now()), 10)
	if err := r.each(isMember, func(one *machine) error {
		r.Progress("Restoring etcd on machine " + one.name)
		return r.restoreMember(ctx, one, ahead)
	}); err != nil {
		return err
	}
	r.Progress("Starting etcd")
	if err := r.each(isMember, func(one *machine) error { return r.do(ctx, one, "start-etcd") }); err != nil {
		return err
	}
	if err := r.each(isMember, func(one *machine) error { return r.do(ctx, one, "await-etcd", one.etcd.metrics) }); err != nil {
		return err
	}
	r.Progress("Starting the control plane")
	if err := r.each(isServer, func(one *machine) error { return r.do(ctx, one, "start-api") }); err != nil {
		return err
	}
	return r.each(isServer, func(one *machine) error { return r.do(ctx, one, "await-api", one.port) })
}

func (r *Restore) do(ctx context.Context, m *machine, verb ...string) error {
	_, err := r.run(ctx, m, nil, verb...)
	return err
}

// restoreMember sends the snapshot to a machine. If the archive can't be read to its end, the
// request is aborted and the machine keeps its data.
func (r *Restore) restoreMember(ctx context.Context, m *machine, ahead string) error {
	out, in := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		_, err := r.read(in)
		in.CloseWithError(err)
		failed <- err
	}()
	_, err := r.run(ctx, m, out, "restore", r.id, m.etcd.data, ahead,
		"--name", m.etcd.name, "--initial-cluster", initialCluster(r.machines), "--initial-advertise-peer-urls", m.etcd.peer)
	_ = out.CloseWithError(io.ErrClosedPipe)
	if read := <-failed; read != nil && !errors.Is(read, io.ErrClosedPipe) {
		return fmt.Errorf("reading snapshot %s: %w", r.Snapshot, read)
	}
	return err
}
