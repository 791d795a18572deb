package main

import (
	"errors"
	"io"
	"net"
	"sync"
)

// relay forwards connections, or stays silent.
type relay struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	silent chan struct{}
	open   map[net.Conn]bool
}

func newRelay(target string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, target: target, open: map[net.Conn]bool{}}
	go r.serve()
	return r, nil
}

func (r *relay) serve() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go r.pass(conn)
		}
	}
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{to, from}, {from, to}} {
		go func() {
			r.copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// copy forwards bytes while the relay is not silent.
func (r *relay) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		silent := r.silent
		r.mu.Unlock()
		if silent != nil {
			<-silent
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = make(chan struct{})
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.silent)
	r.silent = nil
}
