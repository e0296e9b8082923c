module egress-nat/test/chaos/load

go 1.25
