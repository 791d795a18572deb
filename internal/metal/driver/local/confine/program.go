package confine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// instruction is one of the kernel's virtual machine.
type instruction struct {
	code      uint8
	registers uint8 // destination, and source shifted by 4
	offset    int16
	value     int32
}

// Registers.
const (
	r0 = iota
	r1
	r2
	r3
	r4
	r5
	r6
	stack = 10
)

func set(to uint8, value int32) instruction {
	return instruction{code: 0xb7, registers: to, value: value}
}

func move(to, from uint8) instruction { return instruction{code: 0xbf, registers: to | from<<4} }

func add(to uint8, value int32) instruction {
	return instruction{code: 0x07, registers: to, value: value}
}

func and(to uint8, value int32) instruction {
	return instruction{code: 0x57, registers: to, value: value}
}

func shiftRight(to uint8, value int32) instruction {
	return instruction{code: 0x77, registers: to, value: value}
}

// load32 and load64 read from the address in a register.
func load32(to, from uint8, offset int16) instruction {
	return instruction{code: 0x61, registers: to | from<<4, offset: offset}
}

func load64(to, from uint8, offset int16) instruction {
	return instruction{code: 0x79, registers: to | from<<4, offset: offset}
}

// zero64 writes eight zero bytes.
func zero64(to uint8, offset int16) instruction {
	return instruction{code: 0x7a, registers: to, offset: offset}
}

// constant64 takes the place of two instructions.
func constant64(to uint8, value uint64) []instruction {
	return []instruction{{code: 0x18, registers: to, value: int32(uint32(value))}, {value: int32(uint32(value >> 32))}}
}

// unless skips instructions if a register differs from a value, unlessSame from another register.
func unless(a uint8, value int32, skip int) instruction {
	return instruction{code: 0x55, registers: a, offset: int16(skip), value: value}
}

func unlessSame(a, b uint8, skip int) instruction {
	return instruction{code: 0x5d, registers: a | b<<4, offset: int16(skip)}
}

func call(helper int32) instruction { return instruction{code: 0x85, value: helper} }

// verdict ends the program: 1 allows, 0 denies.
func verdict(v int32) []instruction { return []instruction{set(r0, v), {code: 0x95}} }

// program is a program of a cgroup.
type program struct {
	name         string
	kind, attach uint32
	code         []instruction
}

// license of the programs; they use no function that requires another.
const license = "Apache-2.0\x00"

// Attributes of bpf(2).
type (
	loadAttributes struct {
		kind, count       uint32
		code, license     uint64
		logLevel, logSize uint32
		log               uint64
		version, flags    uint32
		name              [16]byte
		index, attach     uint32
	}
	attachAttributes struct{ target, program, attach, flags uint32 }
)

// attachTo loads the program and attaches it to a cgroup, in addition to programs that are attached
// there or below.
func (p program) attachTo(cgroup int) error {
	licensed := []byte(license)
	load := loadAttributes{
		kind: p.kind, count: uint32(len(p.code)), code: address(&p.code[0]), license: address(&licensed[0]), attach: p.attach,
	}
	copy(load.name[:15], p.name)
	fd, err := bpfCall(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
	runtime.KeepAlive(p.code)
	runtime.KeepAlive(licensed)
	if err != nil {
		return fmt.Errorf("loading filter %q: %w", p.name, err)
	}
	defer unix.Close(fd)
	attach := attachAttributes{target: uint32(cgroup), program: uint32(fd), attach: p.attach, flags: unix.BPF_F_ALLOW_MULTI}
	if _, err := bpfCall(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attach), unsafe.Sizeof(attach)); err != nil {
		return fmt.Errorf("attaching filter %q: %w", p.name, err)
	}
	return nil
}

func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

func bpfCall(command uintptr, attributes unsafe.Pointer, size uintptr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attributes), size)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// words returns a text as the words of a buffer that it is copied to, which is filled up with
// zeros.
func words(text string, size int) []uint64 {
	buffer := make([]byte, size)
	copy(buffer, text)
	all := make([]uint64, 0, size/8)
	for ; len(buffer) > 0; buffer = buffer[8:] {
		all = append(all, binary.NativeEndian.Uint64(buffer))
	}
	return all
}
