package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"time"
)

// archive is a compressed tar file that depends on nothing but its files' names and content.
type archive struct {
	prefix string
	time   time.Time
	files  []file
}

type file struct {
	name string // in the archive
	path string
	mode int64
}

func (a archive) write(name string) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(a.writeTo(out), out.Close())
}

func (a archive) writeTo(w io.Writer) error {
	// The payload of drover is compressed already: a higher level takes minutes for 1 %.
	zipped, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	packed := tar.NewWriter(zipped)
	for _, f := range a.files {
		if err := a.add(packed, f); err != nil {
			return err
		}
	}
	return errors.Join(packed.Close(), zipped.Close())
}

func (a archive) add(w *tar.Writer, f file) error {
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Name: path.Join(a.prefix, f.name), Typeflag: tar.TypeReg,
		Size: info.Size(), Mode: f.mode, ModTime: a.time, Format: tar.FormatPAX,
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
