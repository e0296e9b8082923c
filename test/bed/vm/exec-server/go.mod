module egress-nat/test/vm/exec-server

go 1.25
