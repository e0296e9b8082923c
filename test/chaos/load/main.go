// Command chaos-load is the traffic of the chaos measurements, and the server that answers it.
//
//	chaos-load serve ADDRESS...   answers on port 7100 of each address
//	chaos-load load [flags]       keeps flows to servers open, begins new ones, and reports what became of them
//	chaos-load visit ADDRESS...   opens one connection to each of the servers, as a client does that comes and goes
//	chaos-load intrude [flags]    sends gateways what only their clients may send
//	chaos-load wait               does nothing until it is ended: what the container of a client runs
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	role, arguments := "", []string{}
	if len(os.Args) > 1 {
		role, arguments = os.Args[1], os.Args[2:]
	}
	if err := run(role, arguments); err != nil {
		fmt.Fprintf(os.Stderr, "chaos-load %s: %v\n", role, err)
		os.Exit(1)
	}
}

func run(role string, arguments []string) error {
	switch role {
	case "serve":
		return serve(arguments)
	case "load":
		flags := flag.NewFlagSet("load", flag.ExitOnError)
		targets := flags.String("targets", "", "addresses of the server, with commas between them")
		busy := flags.Int("busy", 5, "TCP flows to each target that ask all the time")
		idle := flags.Int("idle", 5, "TCP flows to each target that ask every 90 s")
		udp := flags.Int("udp", 1, "UDP flows to each target")
		rate := flags.Int("rate", 1, "new TCP connections to each target per second")
		flags.Parse(arguments)
		return load(options{strings.Split(*targets, ","), *busy, *idle, *udp, *rate}, os.Stdin, os.Stdout)
	case "visit":
		return visit(arguments)
	case "intrude":
		flags := flag.NewFlagSet("intrude", flag.ExitOnError)
		name := flags.String("name", "", "what the server prints if a packet reaches it")
		gateways := flags.String("gateways", "", "addresses of gateways, with commas between them")
		targets := flags.String("targets", "", "addresses of the server, likewise")
		flags.Parse(arguments)
		return intrude(*name, strings.Split(*gateways, ","), strings.Split(*targets, ","))
	case "wait":
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
		<-ended
		return nil
	}
	return fmt.Errorf("no such role: use serve, load, visit, intrude or wait")
}
