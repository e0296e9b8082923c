package main

import (
	"fmt"
	"time"
)

// A pod that has just started on a busy node may have to wait.
const visitTimeout = 10 * time.Second

// visit opens a connection to each target. It fails if one of them cannot be opened, or if the server sees the pod's own address.
func visit(targets []string) error {
	for _, target := range targets {
		connection, seen, err := connect(target, visitTimeout)
		if err != nil {
			return fmt.Errorf("cannot connect to %s: %w", target, err)
		}
		own := hostOf(connection.LocalAddr())
		connection.Close()
		if seen == own {
			return fmt.Errorf("%s sees the pod's own address %s", target, own)
		}
	}
	return nil
}
