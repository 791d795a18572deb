package store

import "errors"

// DropProject deletes a project and everything in it except devices. Blocks and hardware that a
// device still uses are deleted together with that device.
func (t *Tx) DropProject(id string) error {
	return errors.Join(
		dropAll(t.Tokens(), func(x *Token) bool { return x.Project == id }),
		dropAll(t.SSHKeys(), func(k *SSHKey) bool { return k.ProjectID == id }),
		dropAll(t.Hardware(), func(h *Hardware) bool { return h.ProjectID == id && h.DeviceID == "" }),
		t.dropBlocks(func(b *Block) bool { return b.ProjectID == id && len(b.Uses) == 0 && len(b.Movers) == 0 }),
		t.BGP().Delete(id),
		t.Projects().Delete(id),
	)
}

// dropAll deletes the records that match.
func dropAll[T any](t Table[T], match func(*T) bool) error {
	found, err := t.All(match)
	for _, v := range found {
		err = errors.Join(err, t.Delete(t.id(v)))
	}
	return err
}

func (t *Tx) dropBlocks(match func(*Block) bool) error {
	found, err := t.Blocks().All(match)
	for _, b := range found {
		err = errors.Join(err, t.DropBlock(b))
	}
	return err
}

// isDropped reports whether a project has been deleted.
func (t *Tx) isDropped(project string) (bool, error) {
	_, err := t.Projects().Get(project)
	return errors.Is(err, ErrNotFound), ignoreNotFound(err)
}
