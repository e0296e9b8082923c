// Command exec-server runs commands in a virtual machine for the machine's host. It listens on TCP in a network
// namespace of its own, so that nothing of it shows in the one that is under test; the commands run in the latter.
//
// One connection is one command. Both directions carry frames: a type byte, a big-endian uint32 length, the payload.
//
//	R  request, JSON, first frame: {"argv": [...], "env": {...}, "dir": "..."}
//	I  input for the command; with length 0: the end of its input
//	O  what it wrote to stdout
//	E  what it wrote to stderr
//	X  its end, JSON, last frame: {"exitCode": 0} or {"exitCode": 137, "error": "signal: killed"}
//
// When the host closes the connection, the command's process group is killed.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// After a command has ended, background processes that it left may still hold its output open.
const outputGrace = 500 * time.Millisecond

type request struct {
	Argv []string          `json:"argv"`
	Env  map[string]string `json:"env"`
	Dir  string            `json:"dir"`
}

type result struct {
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: exec-server NETNS ADDRESS:PORT")
	}
	listener, err := listenIn(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exec-server is ready")
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection)
	}
}

// A socket belongs to the network namespace in which it was made, whatever its process does later (setns(2)).
func listenIn(netns, address string) (net.Listener, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	other, err := os.Open(netns)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	if err := setns(other); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	return listener, errors.Join(err, setns(own))
}

func setns(namespace *os.File) error {
	const sysSetns = 308 // x86-64
	if _, _, errno := syscall.RawSyscall(sysSetns, namespace.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return fmt.Errorf("setns %s: %w", namespace.Name(), errno)
	}
	return nil
}

func serve(connection net.Conn) {
	defer connection.Close()
	frames := &frameWriter{writer: connection}
	kind, payload, err := readFrame(connection)
	if err != nil {
		return
	}
	var wanted request
	if err := json.Unmarshal(payload, &wanted); err != nil || kind != 'R' || len(wanted.Argv) == 0 {
		frames.end(result{ExitCode: 127, Error: fmt.Sprintf("the first frame is not a request: %v", err)})
		return
	}
	hangUp, cancel := context.WithCancel(context.Background())
	defer cancel()
	command := exec.CommandContext(hangUp, wanted.Argv[0], wanted.Argv[1:]...)
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Dir = wanted.Dir
	command.Env = os.Environ()
	for name, value := range wanted.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdout = output{'O', frames}
	command.Stderr = output{'E', frames}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = outputGrace
	input, err := startWithInput(command)
	if err != nil {
		frames.end(result{ExitCode: 127, Error: err.Error()})
		return
	}
	go forwardInput(connection, input, cancel)
	err = command.Wait()
	frames.end(resultOf(command.ProcessState, err))
}

// A command's input is a socket, as Node gives it to the programs that it starts: such a file has no name that could be
// opened, and what cannot live with that should not pass a test.
func startWithInput(command *exec.Cmd) (*os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	own, its := os.NewFile(uintptr(pair[0]), "input"), os.NewFile(uintptr(pair[1]), "input")
	defer its.Close()
	command.Stdin = its
	if err := command.Start(); err != nil {
		_ = own.Close()
		return nil, err
	}
	return own, nil
}

func forwardInput(connection net.Conn, input io.WriteCloser, hangUp func()) {
	for {
		kind, payload, err := readFrame(connection)
		if err != nil {
			hangUp()
			return
		}
		if kind != 'I' {
			continue
		}
		if len(payload) == 0 {
			_ = input.Close()
			continue
		}
		// A command need not read its input; it still runs to its end.
		_, _ = input.Write(payload)
	}
}

func resultOf(state *os.ProcessState, err error) result {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return result{ExitCode: 128 + int(status.Signal()), Error: state.String()}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return result{ExitCode: 127, Error: err.Error()}
	}
	return result{ExitCode: state.ExitCode()}
}

type frameWriter struct {
	mutex  sync.Mutex
	writer io.Writer
}

func (f *frameWriter) write(kind byte, payload []byte) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	header := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	_, err := f.writer.Write(append(header, payload...))
	return err
}

func (f *frameWriter) end(r result) {
	payload, _ := json.Marshal(r)
	_ = f.write('X', payload)
}

type output struct {
	kind   byte
	frames *frameWriter
}

func (o output) Write(data []byte) (int, error) {
	if err := o.frames.write(o.kind, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

func readFrame(reader io.Reader) (byte, []byte, error) {
	var header [5]byte
	if _, err := io.ReadFull(reader, header[:]); err != nil {
		return 0, nil, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(header[1:]))
	_, err := io.ReadFull(reader, payload)
	return header[0], payload, err
}
