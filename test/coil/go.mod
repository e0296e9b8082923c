module egress-nat.test/coil

go 1.26.5

require github.com/cybozu-go/coil/v2 v2.15.0
