package main

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const connectTimeout = time.Second

// connections are new ones to one target, begun all the time. One is good if the server's line arrives within a second.
type connections struct {
	Target string `json:"target"`
	// When each good one began.
	SuccessesMs []float64 `json:"successesMs"`
	Failures    []failure `json:"failures"`
	mutex       sync.Mutex
}

type failure struct {
	// When the attempt began.
	AtMs float64 `json:"atMs"`
	// When the handshake was done; absent if it never was.
	ConnectedAtMs float64 `json:"connectedAtMs,omitempty"`
	FailedAtMs    float64 `json:"failedAtMs"`
	Error         string  `json:"error"`
}

func (all *connections) run(rate int, stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	var working sync.WaitGroup
	defer working.Wait()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			working.Go(all.attempt)
		}
	}
}

func (all *connections) attempt() {
	atMs, connectedAtMs := now(), 0.0
	connection, err := dial(all.Target, connectTimeout)
	if err == nil {
		connectedAtMs = now()
		_, err = greeting(connection)
		connection.Close()
	}
	all.mutex.Lock()
	defer all.mutex.Unlock()
	if err == nil {
		all.SuccessesMs = append(all.SuccessesMs, atMs)
	} else {
		all.Failures = append(all.Failures, failure{atMs, connectedAtMs, now(), nameOf(err)})
	}
}

// connect also returns the address that the server sees: that of the gateway.
func connect(target string, timeout time.Duration) (net.Conn, string, error) {
	connection, err := dial(target, timeout)
	if err != nil {
		return nil, "", err
	}
	line, err := greeting(connection)
	if err != nil {
		connection.Close()
		return nil, "", err
	}
	connection.SetDeadline(time.Time{})
	return connection, line, nil
}

// dial gives the connection what is left of the time.
func dial(target string, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout, KeepAlive: -1}
	deadline := time.Now().Add(timeout)
	connection, err := dialer.Dial("tcp", net.JoinHostPort(target, port))
	if err != nil {
		return nil, err
	}
	connection.SetDeadline(deadline)
	return connection, nil
}

// greeting is the server's line; it says nothing else before it is asked.
func greeting(connection net.Conn) (string, error) {
	line, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// nameOf leaves out addresses and ports, so that equal failures have equal names.
func nameOf(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "timeout"
	}
	return err.Error()
}
