package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// The port of gateways for tunnels (FoU).
const fouPort = "5555"

// The server prints datagrams that begin with it.
const intruder = "intruder "

const (
	intrusions     = 3
	intrusionEvery = 100 * time.Millisecond
	protocolUDP    = 17
	udpHeaderSize  = 8
)

// intrude sends to each gateway what a client's tunnel would: a packet for each target of the gateway's family, in a
// datagram. Nobody answers.
func intrude(name string, gateways, targets []string) error {
	for range intrusions {
		for _, gateway := range gateways {
			if err := intrudeBy(name, gateway, targets); err != nil {
				return err
			}
		}
		time.Sleep(intrusionEvery)
	}
	return nil
}

func intrudeBy(name, gateway string, targets []string) error {
	tunnel, err := net.Dial("udp", net.JoinHostPort(gateway, fouPort))
	if err != nil {
		return err
	}
	defer tunnel.Close()
	own, err := netip.ParseAddr(hostOf(tunnel.LocalAddr()))
	if err != nil {
		return err
	}
	for _, target := range targets {
		address, err := netip.ParseAddr(target)
		if err != nil {
			return err
		}
		if address.Is4() != own.Is4() {
			continue
		}
		// An error of the packets before (ICMP) is a refusal, which is as it should be.
		tunnel.Write(packet(own, address, []byte(intruder+name)))
	}
	return nil
}

// packet is a whole IP packet with a datagram for the server.
func packet(from, to netip.Addr, text []byte) []byte {
	number, _ := strconv.Atoi(port)
	datagram := make([]byte, udpHeaderSize, udpHeaderSize+len(text))
	binary.BigEndian.PutUint16(datagram[0:], uint16(number))
	binary.BigEndian.PutUint16(datagram[2:], uint16(number))
	binary.BigEndian.PutUint16(datagram[4:], uint16(cap(datagram)))
	datagram = append(datagram, text...)
	pseudo := slices.Concat(from.AsSlice(), to.AsSlice())
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(datagram)))
	pseudo = binary.BigEndian.AppendUint32(pseudo, protocolUDP)
	binary.BigEndian.PutUint16(datagram[6:], checksum(append(pseudo, datagram...)))
	return append(header(from, to, len(datagram)), datagram...)
}

// header is that of IPv4 (RFC 791) or IPv6 (RFC 8200), without options.
func header(from, to netip.Addr, size int) []byte {
	if from.Is4() {
		fixed := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocolUDP, 0, 0}
		all := slices.Concat(fixed, from.AsSlice(), to.AsSlice())
		binary.BigEndian.PutUint16(all[2:], uint16(len(all)+size))
		binary.BigEndian.PutUint16(all[10:], checksum(all))
		return all
	}
	fixed := []byte{0x60, 0, 0, 0, 0, 0, protocolUDP, 64}
	binary.BigEndian.PutUint16(fixed[4:], uint16(size))
	return slices.Concat(fixed, from.AsSlice(), to.AsSlice())
}

// checksum is that of RFC 1071.
func checksum(data []byte) uint16 {
	if len(data)%2 == 1 {
		data = append(data, 0)
	}
	var sum uint32
	for index := 0; index < len(data); index += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[index:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
