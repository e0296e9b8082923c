package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
)

const port = "7100"

// serve answers on each of the addresses, and prints "ready" once it does. A TCP connection gets the address that the server sees, as a line, and then
// whatever it sends. A datagram comes back behind that address and a blank, and one of an intruder is printed.
func serve(addresses []string) error {
	failed := make(chan error)
	for _, address := range addresses {
		listener, err := listen.Listen(context.Background(), "tcp", net.JoinHostPort(address, port))
		if err != nil {
			return err
		}
		packets, err := listen.ListenPacket(context.Background(), "udp", net.JoinHostPort(address, port))
		if err != nil {
			return err
		}
		go func() { failed <- serveConnections(listener) }()
		go func() { failed <- serveDatagrams(packets) }()
	}
	fmt.Println("ready")
	return <-failed
}

// Go's keepalives would make idle flows busy ones.
var listen = net.ListenConfig{KeepAlive: -1}

func serveConnections(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			fmt.Fprintln(connection, hostOf(connection.RemoteAddr()))
			io.Copy(connection, connection)
		}()
	}
}

func serveDatagrams(packets net.PacketConn) error {
	buffer := make([]byte, 1500)
	for {
		length, sender, err := packets.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(buffer[:length], []byte(intruder)) {
			fmt.Printf("%s\n", buffer[:length])
		}
		packets.WriteTo(fmt.Appendf(nil, "%s %s", hostOf(sender), buffer[:length]), sender)
	}
}

func hostOf(address net.Addr) string {
	host, _, _ := net.SplitHostPort(address.String())
	return host
}
