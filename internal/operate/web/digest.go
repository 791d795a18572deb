package web

import (
	"encoding/hex"
	"hash"
	"hash/fnv"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// digest identifies a set of versions of objects, whatever their order.
type digest struct {
	one hash.Hash64
	sum uint64
}

func newDigest() *digest { return &digest{one: fnv.New64a()} }

func (d *digest) add(o metav1.Object) {
	d.one.Reset()
	_, _ = io.WriteString(d.one, string(o.GetUID())+"/"+o.GetResourceVersion()) // a hash never fails
	d.sum += d.one.Sum64()
}

func (d *digest) String() string {
	out := make([]byte, 0, 8)
	for shift := 56; shift >= 0; shift -= 8 {
		out = append(out, byte(d.sum>>shift))
	}
	return hex.EncodeToString(out)
}

func addAll[T any, P interface {
	*T
	metav1.Object
}](d *digest, all []T) {
	for i := range all {
		d.add(P(&all[i]))
	}
}
